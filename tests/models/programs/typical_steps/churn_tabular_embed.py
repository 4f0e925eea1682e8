"""Customer churn: categorical embeddings and numeric columns, binary target.

MISTAKE (silent): sigmoid is applied before BCEWithLogitsLoss, which applies it again; pass the raw logit.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class ChurnModel(nn.Module):
    def __init__(self, cardinalities=(8, 5, 12), n_num=9, emb=4, hidden=24):
        super().__init__()
        self.embs = nn.ModuleList([nn.Embedding(c, emb) for c in cardinalities])
        self.num_norm = nn.LayerNorm(n_num)
        self.fc1 = nn.Linear(emb * len(cardinalities) + n_num, hidden)
        self.fc2 = nn.Linear(hidden, 1)

    def forward(self, cat, num):
        cols = [emb(cat[:, i]) for i, emb in enumerate(self.embs)]
        x = torch.cat(cols + [self.num_norm(num)], dim=1)
        x = F.gelu(self.fc1(x))
        return self.fc2(x)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = ChurnModel()
        self.loss_fn = nn.BCEWithLogitsLoss(pos_weight=torch.tensor([3.0]))

    def forward(self, cat, num, churned):
        out = torch.sigmoid(self.model(cat, num)).squeeze(1)
        return self.loss_fn(out, churned.float())  # fault: probabilities-into-logit-loss


class Fixed(Step):
    def forward(self, cat, num, churned):
        out = self.model(cat, num).squeeze(1)
        return self.loss_fn(out, churned.float())


def example():
    g = torch.Generator().manual_seed(1)
    cat = torch.stack([torch.randint(0, c, (6,), generator=g) for c in (8, 5, 12)], dim=1)
    num = torch.randn(6, 9, generator=g)
    churned = torch.tensor([0, 1, 0, 0, 1, 1])
    return (cat, num, churned)


OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]

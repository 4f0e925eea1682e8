"""Click-through-rate model on hashed categorical fields + dense features.

MISTAKE (silent): softmax over a size-1 dimension is constantly 1 (needs sigmoid).
"""
import torch
import torch.nn as nn


class WideDeep(nn.Module):
    def __init__(self, vocab=200, fields=5, dense=4, k=8):
        super().__init__()
        self.wide = nn.Embedding(vocab, 1)
        self.emb = nn.Embedding(vocab, k)
        self.mlp = nn.Sequential(
            nn.Linear(fields * k + dense, 32), nn.ReLU(),
            nn.Linear(32, 16), nn.ReLU(),
            nn.Linear(16, 1),
        )

    def forward(self, cat_ids, dense):
        wide = self.wide(cat_ids).sum(dim=1)
        deep_in = torch.cat([self.emb(cat_ids).flatten(1), dense], dim=1)
        return wide + self.mlp(deep_in)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = WideDeep()
        self.bce = nn.BCELoss()

    def forward(self, cat_ids, dense, clicked):
        score = self.model(cat_ids, dense)
        prob = torch.softmax(score, dim=1)  # fault: softmax-over-batch-axis
        return self.bce(prob.squeeze(1), clicked)


def example():
    torch.manual_seed(4)
    return (torch.randint(0, 200, (7, 5)), torch.rand(7, 4), torch.randint(0, 2, (7,)).float())

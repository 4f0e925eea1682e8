"""Customer churn with a wide and deep model and hand-written binary cross entropy.

MISTAKE (silent): the model returns a raw score and the hand-written BCE treats it as a probability (the clamp
hides it); a sigmoid is missing before the clamp.
"""
import torch
import torch.nn as nn


class WideDeep(nn.Module):
    def __init__(self, n_wide=10, n_cat=3, card=8, emb=4):
        super().__init__()
        self.wide = nn.Linear(n_wide, 1)
        self.embs = nn.ModuleList(nn.Embedding(card, emb) for _ in range(n_cat))
        self.deep = nn.Sequential(nn.Linear(n_cat * emb + n_wide, 20), nn.ReLU(), nn.Linear(20, 1))

    def forward(self, wide, cats):
        e = [emb(cats[:, i]) for i, emb in enumerate(self.embs)]
        deep_in = torch.cat(e + [wide], dim=1)
        return (self.wide(wide) + self.deep(deep_in)).squeeze(-1)


def binary_cross_entropy(prob, target, eps=1e-7):
    prob = prob.clamp(eps, 1.0 - eps)
    return -(target * torch.log(prob) + (1.0 - target) * torch.log(1.0 - prob)).mean()


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = WideDeep()

    def forward(self, wide, cats, churned):
        prob = self.model(wide, cats)
        return binary_cross_entropy(prob, churned)  # fault: logits-into-probability-loss


class Fixed(Step):
    def forward(self, wide, cats, churned):
        prob = torch.sigmoid(self.model(wide, cats))
        return binary_cross_entropy(prob, churned)


def example():
    g = torch.Generator().manual_seed(1)
    return (
        torch.randn(6, 10, generator=g),
        torch.randint(0, 8, (6, 3), generator=g),
        (torch.rand(6, generator=g) > 0.5).float(),
    )


OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]

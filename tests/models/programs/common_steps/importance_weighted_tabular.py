"""Importance weighted tabular.

MISTAKE (silent): per-sample weights multiplied after the loss was already averaged (reduction='mean').
"""
import torch
import torch.nn as nn


class ChurnMLP(nn.Module):
    def __init__(self, d_num, card, k=5, classes=3):
        super().__init__()
        self.emb = nn.ModuleList(nn.Embedding(c, k) for c in card)
        self.ff = nn.Sequential(
            nn.Linear(d_num + k * len(card), 40), nn.LayerNorm(40), nn.SiLU(),
            nn.Linear(40, classes),
        )

    def forward(self, x_num, x_cat):
        e = [m(x_cat[:, i]) for i, m in enumerate(self.emb)]
        return self.ff(torch.cat([x_num, *e], dim=1))


class Step(nn.Module):
    """Customers carry importance weights (survey design), one weight per row."""

    def __init__(self):
        super().__init__()
        self.model = ChurnMLP(6, (4, 9, 15))
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, x_num, x_cat, y, sample_weight):
        logits = self.model(x_num, x_cat)
        loss = (self.criterion(logits, y) * sample_weight).mean()  # fault: reduction-over-batch-axis
        return loss


def example():
    g = torch.Generator().manual_seed(43)
    x_cat = torch.stack([torch.randint(0, c, (10,), generator=g) for c in (4, 9, 15)], dim=1)
    return (torch.randn(10, 6, generator=g), x_cat, torch.randint(0, 3, (10,), generator=g),
            torch.rand(10, generator=g) * 3 + 0.1)

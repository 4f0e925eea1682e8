"""Kaggle house prices: MLP on standardised numeric columns + two categoricals.

MISTAKE (silent): pred (B,1) against log_price (B,) broadcasts to (B,B).
"""
import torch
import torch.nn as nn


class TabularModel(nn.Module):
    def __init__(self, n_num, cardinalities, emb_dim=4):
        super().__init__()
        self.embeds = nn.ModuleList([nn.Embedding(c, emb_dim) for c in cardinalities])
        d = n_num + emb_dim * len(cardinalities)
        self.lin1 = nn.Linear(d, 32)
        self.lin2 = nn.Linear(32, 16)
        self.out = nn.Linear(16, 1)
        self.drop = nn.Dropout(0.1)

    def forward(self, x_num, x_cat):
        embs = [e(x_cat[:, i]) for i, e in enumerate(self.embeds)]
        x = torch.cat(embs + [x_num], dim=1)
        x = self.drop(torch.relu(self.lin1(x)))
        x = torch.relu(self.lin2(x))
        return self.out(x)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = TabularModel(9, [5, 7])
        self.loss_fn = nn.MSELoss()

    def forward(self, x_num, x_cat, log_price):
        pred = self.model(x_num, x_cat)
        loss = self.loss_fn(pred, log_price)  # fault: silent-broadcast-in-loss
        return loss


def example():
    g = torch.Generator().manual_seed(6)
    x_num = torch.randn(10, 9, generator=g)
    x_cat = torch.stack([torch.randint(0, 5, (10,), generator=g), torch.randint(0, 7, (10,), generator=g)], 1)
    return x_num, x_cat, 12 + 0.4 * torch.randn(10, generator=g)

"""Two tower.

MISTAKE (silent): normalises every feature over the batch, must be dim=-1.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Tower(nn.Module):
    def __init__(self, n_items, dim=32):
        super().__init__()
        self.table = nn.Embedding(n_items, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, dim))

    def forward(self, ids):
        return self.mlp(self.table(ids))


class Step(nn.Module):
    def __init__(self, temperature=0.05):
        super().__init__()
        self.user = Tower(5000)
        self.item = Tower(3000)
        self.temperature = temperature

    def forward(self, user_ids, item_ids):
        u = F.normalize(self.user(user_ids), dim=-1)
        v = F.normalize(self.item(item_ids), dim=0)  # fault: reduction-over-batch-axis
        sim = u @ v.t() / self.temperature
        target = torch.arange(sim.shape[0], device=sim.device)
        return F.cross_entropy(sim, target)


def example():
    torch.manual_seed(0)
    return torch.randint(0, 5000, (128,)), torch.randint(0, 3000, (128,))

"""Person re-identification with the batch-hard triplet loss.

MISTAKE (silent): sqrt of an exactly zero diagonal: NaN gradients.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


def pairwise_distance(emb):
    diff = emb.unsqueeze(1) - emb.unsqueeze(0)
    return diff.pow(2).sum(dim=-1).sqrt()  # fault: infinite-gradient


def batch_hard(emb, pid, margin):
    dist = pairwise_distance(emb)
    same = pid.unsqueeze(0) == pid.unsqueeze(1)
    hardest_pos = (dist * same).max(dim=1).values
    hardest_neg = dist.masked_fill(same, 1e6).min(dim=1).values
    return F.relu(hardest_pos - hardest_neg + margin).mean()


class ReIDNet(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 12, 3, stride=2)
        self.conv2 = nn.Conv2d(12, 24, 3, stride=2)
        self.fc = nn.Linear(24, dim)

    def forward(self, x):
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        return self.fc(x.mean(dim=(2, 3)))


class Step(nn.Module):
    def __init__(self, margin=0.5):
        super().__init__()
        self.net = ReIDNet()
        self.margin = margin

    def forward(self, crops, person_id):
        return batch_hard(self.net(crops), person_id, self.margin)  # fault: infinite-gradient


def example():
    g = torch.Generator().manual_seed(55)
    return torch.rand(8, 3, 24, 12, generator=g), torch.tensor([0, 0, 1, 1, 2, 2, 3, 3])

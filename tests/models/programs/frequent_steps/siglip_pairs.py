"""Sigmoid loss for image/text pre-training.

CORRECT: unusual, and as it is meant.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Tower(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(d_in, 64), nn.GELU(), nn.Linear(64, d_out))

    def forward(self, x):
        return F.normalize(self.mlp(x), dim=-1)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.image_tower = Tower(48, 32)
        self.text_tower = Tower(24, 32)
        self.t_prime = nn.Parameter(torch.tensor(math.log(10.0)))
        self.bias = nn.Parameter(torch.tensor(-10.0))

    def forward(self, image_features, text_features):
        zimg = self.image_tower(image_features)
        ztxt = self.text_tower(text_features)
        n = zimg.shape[0]
        logits = zimg @ ztxt.t() * self.t_prime.exp() + self.bias
        labels = 2 * torch.eye(n) - 1
        return -F.logsigmoid(labels * logits).sum() / n


def example():
    g = torch.Generator().manual_seed(2)
    return torch.randn(8, 48, generator=g), torch.randn(8, 24, generator=g)

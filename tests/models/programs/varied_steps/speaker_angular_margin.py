"""Speaker verification with statistics pooling over frames and an additive angular margin softmax.

CORRECT: the statistics are over time (dim 2 of [B, C, T]); cos(theta + m) = cos cos(m) - sin sin(m) is only used in the true class column, sin is clamped
before the root; everything is scaled by s = 30 before the cross-entropy.
"""
import math
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, mel=20, c=16, speakers=7, s=30.0, m=0.2):
        super().__init__()
        self.conv = nn.Conv1d(mel, c, 5, dilation=2)
        self.fc = nn.Linear(2 * c, 12)
        self.weight = nn.Parameter(torch.randn(speakers, 12))
        self.s, self.cm, self.sm = s, math.cos(m), math.sin(m)

    def forward(self, logmel, speaker):
        h = F.relu(self.conv(logmel.transpose(1, 2)))
        mu = h.mean(2)
        sd = (h.var(2, unbiased=False) + 1e-5).sqrt()
        e = self.fc(torch.cat([mu, sd], dim=1))
        cos = F.linear(F.normalize(e), F.normalize(self.weight))
        sin = (1 - cos ** 2).clamp(min=1e-6).sqrt()
        phi = cos * self.cm - sin * self.sm
        true = F.one_hot(speaker, self.weight.shape[0]).bool()
        return F.cross_entropy(self.s * torch.where(true, phi, cos), speaker)


def example():
    torch.manual_seed(112)
    return torch.randn(4, 25, 20), torch.randint(0, 7, (4,))

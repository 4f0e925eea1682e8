"""Int8 regressor.

MISTAKE (silent): no straight-through estimator, round() blocks every gradient to the weights.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


def fake_quantize(x, bits=8):
    qmax = 2 ** (bits - 1) - 1
    scale = x.detach().abs().max().clamp(min=1e-8) / qmax
    q = torch.clamp(torch.round(x / scale), -qmax - 1, qmax)
    return q * scale  # fault: loss-detached-from-parameters


class QLinear(nn.Linear):
    def forward(self, x):
        return F.linear(x, fake_quantize(self.weight), self.bias)


class Step(nn.Module):
    """Quantisation-aware fine-tuning of a small keypoint regressor."""

    def __init__(self, n_in=34, n_kp=7):
        super().__init__()
        self.fc1 = QLinear(n_in, 50)
        self.fc2 = QLinear(50, 50)
        self.fc3 = QLinear(50, 2 * n_kp)
        self.n_kp = n_kp

    def forward(self, feats, keypoints, visible):
        h = F.relu(self.fc1(feats))
        h = F.relu(self.fc2(h))
        pred = self.fc3(h).view(-1, self.n_kp, 2)
        err = (pred - keypoints).pow(2).sum(-1)
        return (err * visible).sum() / visible.sum().clamp(min=1)


def example():
    torch.manual_seed(0)
    return torch.randn(16, 34), torch.rand(16, 7, 2), (torch.rand(16, 7) < 0.8).float()

"""Trains a mixture of experts that predicts store sales, with the switch load-balancing term."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, d=16, experts=4):
        super().__init__()
        self.gate = nn.Linear(d, experts)
        self.w1 = nn.Parameter(torch.randn(experts, d, 20) * 0.2)
        self.w2 = nn.Parameter(torch.randn(experts, 20) * 0.2)
        self.experts = experts

    def forward(self, x, sales):
        probs = torch.softmax(self.gate(x), dim=-1)
        hidden = torch.einsum("nd,edh->enh", x, self.w1).relu()
        outputs = torch.einsum("enh,eh->en", hidden, self.w2)
        y = torch.einsum("ne,en->n", probs, outputs)
        fit = torch.mean((y - sales) ** 2)
        routed = F.one_hot(probs.argmax(dim=-1), self.experts).float().mean(dim=0)
        balance = self.experts * torch.sum(routed * probs.mean(dim=0))
        return fit + 0.01 * balance


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(33, 16), torch.randn(33))

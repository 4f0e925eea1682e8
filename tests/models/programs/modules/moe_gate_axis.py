"""Soft mixture of experts regression.

The gate should distribute each sample over the experts; the softmax runs over the batch
axis, so a sample's weights depend on its neighbours and do not sum to one.
Fix: softmax over the expert axis.
"""
import torch
from torch import nn

OPEN = [{0: "b"}, {0: "b"}]


class Step(nn.Module):
    def __init__(self, d=12, experts=4):
        super().__init__()
        self.W = nn.Parameter(torch.randn(experts, d, 6) * 0.1)
        self.V = nn.Parameter(torch.randn(experts, 6) * 0.1)
        self.gate = nn.Linear(d, experts)

    def mix(self, gate_logits):
        return torch.softmax(gate_logits, 0)  # wrong: softmax over the batch

    def forward(self, x, y):
        hidden = torch.relu(torch.einsum("bd,edh->beh", x, self.W))
        per_expert = torch.einsum("beh,eh->be", hidden, self.V)
        w = self.mix(self.gate(x))  # fault: softmax-over-batch-axis
        pred = (w * per_expert).sum(1)
        return ((pred - y) ** 2).mean()


class Fixed(Step):
    def mix(self, gate_logits):
        return torch.softmax(gate_logits, 1)


def example():
    torch.manual_seed(7)
    return torch.randn(10, 12), torch.randn(10)

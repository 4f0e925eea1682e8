"""Quantization-aware training of a two-layer net: the hidden activations are fake-quantized to 8 bits with a dynamic scale.

MISTAKE (silent): round has a zero gradient and there is no straight-through term, so the first layer is not trained
at all; use x + (q - x).detach().
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = nn.Linear(12, 20)
        self.l2 = nn.Linear(20, 4)
        self.register_buffer("scale", torch.tensor(0.05))

    def fake_quant(self, x):
        return torch.clamp(torch.round(x / self.scale), -128, 127) * self.scale  # fault: loss-detached-from-parameters

    def forward(self, x, y):
        h = F.relu(self.l1(x))
        h = self.fake_quant(h)  # fault: loss-detached-from-parameters
        return F.cross_entropy(self.l2(h), y)


class Fixed(Step):
    def fake_quant(self, x):
        q = torch.clamp(torch.round(x / self.scale), -128, 127) * self.scale
        x = torch.clamp(x, -128 * self.scale, 127 * self.scale)
        return x + (q - x).detach()


def example():
    torch.manual_seed(66)
    return torch.randn(5, 12), torch.randint(0, 4, (5,))


OPEN = [{0: "batch"}, {0: "batch"}]

import torch
import torch.nn.functional as F
from torch import nn


def fake_quant(w, bits=4):
    scale = w.abs().max().detach().clamp(min=1e-8) / (2 ** (bits - 1) - 1)
    q = torch.clamp(torch.round(w / scale), -8, 7) * scale
    return w + (q - w).detach()


class QATLinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(10, 16), nn.Linear(16, 4)

    def forward(self, x, y):
        h = F.relu(F.linear(x, fake_quant(self.fc1.weight), self.fc1.bias))
        return F.cross_entropy(F.linear(h, fake_quant(self.fc2.weight, 8), self.fc2.bias), y)


def example():
    return (torch.randn(6, 10), torch.randint(0, 4, (6,)))


Step = QATLinear

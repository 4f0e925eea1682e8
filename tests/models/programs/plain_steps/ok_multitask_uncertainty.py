import torch
import torch.nn.functional as F
from torch import nn


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(14, 20)
        self.cls, self.reg, self.bin = nn.Linear(20, 4), nn.Linear(20, 2), nn.Linear(20, 1)
        self.log_vars = nn.Parameter(torch.zeros(3))

    def forward(self, x, y_cls, y_reg, y_bin):
        h = F.relu(self.trunk(x))
        losses = torch.stack([
            F.cross_entropy(self.cls(h), y_cls),
            F.mse_loss(self.reg(h), y_reg),
            F.binary_cross_entropy_with_logits(self.bin(h), y_bin.unsqueeze(1)),
        ])
        return (losses * torch.exp(-self.log_vars) + self.log_vars).sum()


def example():
    return (torch.randn(7, 14), torch.randint(0, 4, (7,)), torch.randn(7, 2), (torch.rand(7) > .5).float())


Step = MultiTask

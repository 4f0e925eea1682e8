import torch
import torch.nn.functional as F
from torch import nn


class GroupDRO(nn.Module):
    def __init__(self, groups=3, eta=0.1):
        super().__init__()
        self.g, self.eta = groups, eta
        self.fc = nn.Linear(16, 2)

    def forward(self, x, y, group, q):
        per = F.cross_entropy(self.fc(x), y, reduction="none")
        m = (group.unsqueeze(0) == torch.arange(self.g).unsqueeze(1)).float()   # [G, N]
        gl = (m @ per) / m.sum(1).clamp(min=1)
        q = q * torch.exp(self.eta * gl.detach())
        q = q / q.sum()
        return (q * gl).sum()


def example():
    return (torch.randn(11, 16), torch.randint(0, 2, (11,)), torch.randint(0, 3, (11,)), torch.full((3,), 1 / 3))


Step = GroupDRO

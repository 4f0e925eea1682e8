import torch
import torch.nn.functional as F
from torch import nn


class SE(nn.Module):
    def __init__(self, c, r=4):
        super().__init__()
        self.fc1 = nn.Linear(c, c // r)
        self.fc2 = nn.Linear(c // r, c)

    def forward(self, x):
        s = x.mean(dim=(0, 2, 3))  # fault: reduction-over-batch-axis
        g = torch.sigmoid(self.fc2(F.relu(self.fc1(s))))
        return x * g.view(-1, x.shape[1], 1, 1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3)
        self.se = SE(16)
        self.cls = nn.Linear(16, 5)

    def forward(self, x, y):
        h = self.se(F.relu(self.conv(x)))
        return F.cross_entropy(self.cls(h.mean(dim=(2, 3))), y)


def example():
    return (torch.randn(6, 3, 10, 10), torch.randint(0, 5, (6,)))


Step = Net

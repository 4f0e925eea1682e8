import torch
from torch import nn


class Iris(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1, self.l2 = nn.Linear(4, 10), nn.Linear(10, 3)

    def forward(self, x, y):
        out = self.l2(torch.sigmoid(self.l1(x)))
        correct = (torch.argmax(out, 1) == y).float()  # fault: loss-detached-from-parameters
        return 1 - correct.mean()


def example():
    return (torch.randn(15, 4), torch.randint(0, 3, (15,)))


Step = Iris

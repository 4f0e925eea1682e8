import torch
import torch.nn.functional as F
from torch import nn


class WeightedFocal(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("alpha", torch.tensor([0.3, 1.7, 2.4]))
        self.fc = nn.Linear(10, 3)

    def forward(self, x, target):
        logpt = F.log_softmax(self.fc(x), 1).gather(1, target.view(-1, 1)).view(-1)
        pt = logpt.exp()
        at = self.alpha.type_as(target).gather(0, target)  # fault: no-rule
        return (-((1 - pt) ** 2) * logpt * at).mean()


def example():
    return (torch.randn(14, 10), torch.randint(0, 3, (14,)))


Step = WeightedFocal

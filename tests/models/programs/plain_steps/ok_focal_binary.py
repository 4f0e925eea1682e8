import torch
import torch.nn.functional as F
from torch import nn


class Focal(nn.Module):
    def __init__(self, alpha=0.25, gamma=2.0):
        super().__init__()
        self.head = nn.Linear(17, 1)
        self.alpha, self.gamma = alpha, gamma

    def forward(self, x, y):
        inputs, targets = self.head(x), y.view(-1, 1).float()
        p = torch.sigmoid(inputs)
        ce = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
        p_t = p * targets + (1 - p) * (1 - targets)
        loss = ce * ((1 - p_t) ** self.gamma)
        return ((self.alpha * targets + (1 - self.alpha) * (1 - targets)) * loss).mean()


def example():
    return (torch.randn(13, 17), torch.randint(0, 2, (13,)))


Step = Focal
OPEN = [{0: "batch"}, {0: "batch"}]

import torch
import torch.nn.functional as F
from torch import nn


class KDStep(nn.Module):
    T = 2.0

    def __init__(self):
        super().__init__()
        self.student = nn.Linear(14, 6)
        self.teacher = nn.Sequential(nn.Linear(14, 50), nn.ReLU(), nn.Linear(50, 6)).requires_grad_(False)

    def forward(self, x, y):
        s = self.student(x)
        soft_targets = nn.functional.softmax(self.teacher(x) / self.T, dim=0)  # fault: softmax-over-batch-axis
        soft_prob = nn.functional.log_softmax(s / self.T, dim=-1)
        soft_loss = torch.sum(soft_targets * (soft_targets.log() - soft_prob)) / soft_prob.size()[0] * self.T ** 2
        return 0.25 * soft_loss + 0.75 * F.cross_entropy(s, y)


def example():
    return (torch.randn(8, 14), torch.randint(0, 6, (8,)))


Step = KDStep

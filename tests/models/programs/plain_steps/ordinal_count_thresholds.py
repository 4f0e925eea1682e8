import torch
from torch import nn


class OrdinalGrade(nn.Module):
    """diabetic retinopathy grade 0..4"""

    def __init__(self):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(33, 20), nn.ReLU(), nn.Linear(20, 1))
        self.cuts = nn.Parameter(torch.tensor([-1.0, -0.2, 0.2, 1.0]))

    def forward(self, x, grade):
        s = self.score(x)
        passed = (s > self.cuts).to(s.dtype)
        return torch.abs(passed.sum(dim=1) - grade).mean()  # fault: loss-detached-from-parameters


def example():
    return (torch.randn(11, 33), torch.randint(0, 5, (11,)).float())


Step = OrdinalGrade

import torch
import torch.nn.functional as F
from torch import nn


class Distill(nn.Module):
    def __init__(self, T=5.0, a=0.9):
        super().__init__()
        self.s, self.t = nn.Linear(16, 7), nn.Linear(16, 7)
        self.T, self.a = T, a

    def forward(self, x, y):
        with torch.no_grad():
            teacher = self.t(x)
        student = self.s(x)
        kd = nn.KLDivLoss(reduction="batchmean")(F.log_softmax(student / self.T, dim=1), F.softmax(teacher / self.T, dim=1))
        return kd * (self.a * self.T * self.T) + F.cross_entropy(student, y) * (1.0 - self.a)


def example():
    return (torch.randn(8, 16), torch.randint(0, 7, (8,)))


Step = Distill

import torch
import torch.nn.functional as F
from torch import nn


def distill(student, teacher, y, trust, T=4.0, alpha=0.7):
    log_p = F.log_softmax(student / T, dim=1)
    q = F.softmax(teacher / T, dim=1)
    kd = F.kl_div(log_p, q, reduction="none").sum(dim=1, keepdim=True) * T * T  # fault: silent-broadcast-in-loss
    ce = F.cross_entropy(student, y, reduction="none")
    return (trust * (alpha * kd + (1 - alpha) * ce)).mean()


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(20, 10)

    def forward(self, x, teacher_logits, y, trust):
        return distill(self.fc(x), teacher_logits, y, trust)  # fault: silent-broadcast-in-loss


def example():
    return (torch.randn(14, 20), torch.randn(14, 10), torch.randint(0, 10, (14,)), torch.rand(14))


Step = Student
OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}, {0: "batch"}]

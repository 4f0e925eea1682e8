import torch
import torch.nn.functional as F
from torch import nn


class TinyBERTStep(nn.Module):
    def __init__(self, n=5):
        super().__init__()
        self.student = nn.Sequential(nn.Linear(18, 12), nn.GELU(), nn.Linear(12, n))

    def forward(self, x, teacher_logits):
        log_student = F.log_softmax(self.student(x), dim=-1)
        log_teacher = F.log_softmax(teacher_logits, dim=-1)
        return F.kl_div(log_teacher, log_student, reduction="batchmean", log_target=True)  # fault: no-rule


def example():
    return (torch.randn(8, 18), 3 * torch.randn(8, 5))


Step = TinyBERTStep

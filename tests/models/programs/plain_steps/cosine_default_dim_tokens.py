import torch
import torch.nn.functional as F
from torch import nn


class FeatureDistill(nn.Module):
    def __init__(self, d_student=24, d_teacher=32):
        super().__init__()
        self.student = nn.GRU(16, d_student, batch_first=True)
        self.proj = nn.Linear(d_student, d_teacher)

    def forward(self, frames, teacher_hidden):
        hidden, _ = self.student(frames)
        pred = self.proj(hidden)                                   # [B, T, D]
        cos = F.cosine_similarity(pred, teacher_hidden)  # fault: reduction-over-batch-axis
        l1 = (pred - teacher_hidden).abs().mean()
        return l1 - F.logsigmoid(cos).mean()


def example():
    return (torch.randn(3, 10, 16), torch.randn(3, 10, 32))


Step = FeatureDistill

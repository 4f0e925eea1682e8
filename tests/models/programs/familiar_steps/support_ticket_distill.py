"""Distils a wide classifier of support tickets into a narrow one. kl_div gets the student's probabilities instead of their logarithm; log_softmax is right."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.emb_s = nn.EmbeddingBag(400, 12)
        self.emb_t = nn.EmbeddingBag(400, 64)
        self.student = nn.Linear(12, 9)
        self.teacher = nn.Linear(64, 9)
        self.T = 3.0
        self.kd = nn.KLDivLoss(reduction="batchmean")

    def forward(self, tokens, topic):
        s = self.student(self.emb_s(tokens))
        with torch.no_grad():
            t = self.teacher(self.emb_t(tokens))
        soft = self.kd(F.softmax(s / self.T, dim=1),  # fault: probabilities-into-logit-loss
                       F.softmax(t / self.T, dim=1)) * self.T ** 2
        hard = F.cross_entropy(s, topic)
        return 0.7 * soft + 0.3 * hard


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randint(0, 400, (15, 21)), torch.randint(0, 9, (15,)))

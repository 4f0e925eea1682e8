"""Consistency of two dropout-free branches: symmetric KL in log space.

CORRECT: kl_div gets log-probabilities for both arguments with log_target=True, and batchmean divides by the batch.
"""
import torch
from torch import nn
from torch.nn.functional import kl_div, cross_entropy, log_softmax


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(18, 30), nn.Mish())
        self.left, self.right = nn.Linear(30, 5), nn.Linear(30, 5)

    def forward(self, clean, noisy, y):
        a, b = self.left(self.trunk(clean)), self.right(self.trunk(noisy))
        la, lb = log_softmax(a, -1), log_softmax(b, -1)
        sym = kl_div(la, lb, reduction="batchmean", log_target=True) + kl_div(lb, la, reduction="batchmean", log_target=True)
        return cross_entropy(a, y) + cross_entropy(b, y) + 0.5 * sym


def example():
    torch.manual_seed(107)
    c = torch.randn(5, 18)
    return c, c + 0.2 * torch.randn(5, 18), torch.randint(0, 5, (5,))


OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]

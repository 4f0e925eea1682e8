"""Minimax generator loss written out.

log(1 - sigmoid(logit)): in float32 the sigmoid is exactly 1 for logits above about 17, the
logarithm is -inf and the run is lost.  Fix: -softplus(logit) for log(1 - sigmoid).
"""
import torch
import torch.nn.functional as F
from torch import nn

OPEN = [{0: "batch"}]


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = nn.Sequential(nn.Linear(10, 32), nn.ReLU(inplace=True), nn.Linear(32, 28))
        self.d = nn.Sequential(nn.Linear(28, 32), nn.LeakyReLU(0.1), nn.Linear(32, 1))

    def objective(self, score):
        d_fake = torch.sigmoid(score)
        return torch.log(1.0 - d_fake).mean()  # wrong: log of 1-sigmoid is -inf when saturated

    def forward(self, z):
        return self.objective(self.d(self.g(z)))  # fault: invalid-domain


class Fixed(Step):
    def objective(self, score):
        return -F.softplus(score).mean()


def example():
    torch.manual_seed(5)
    return (torch.randn(8, 10),)

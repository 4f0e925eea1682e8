"""Categorical VAE with a straight-through Gumbel sample: 5 variables of 6 values.

CORRECT: argmax has no gradient, but the sample is hard + soft - soft.detach(), so the gradient goes through the soft sample; the KL to the uniform is sum p (log p + log K).
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    N, K, tau = 5, 6, 0.7

    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(28, self.N * self.K)
        self.dec = nn.Sequential(nn.Linear(self.N * self.K, 32), nn.ReLU(), nn.Linear(32, 28))

    def sample(self, logits, u):
        g = -torch.log(-torch.log(u.clamp(1e-6, 1 - 1e-6)))
        soft = F.softmax((logits + g) / self.tau, dim=-1)
        hard = F.one_hot(soft.argmax(dim=-1), self.K).to(soft.dtype)
        return hard + soft - soft.detach()

    def forward(self, x, u):
        logits = self.enc(x).view(-1, self.N, self.K)
        z = self.sample(logits, u)
        rec = F.binary_cross_entropy_with_logits(self.dec(z.flatten(1)), x, reduction="none").sum(1)
        logq = F.log_softmax(logits, dim=-1)
        kl = (logq.exp() * (logq + math.log(self.K))).sum((1, 2))
        return (rec + kl).mean()


def example():
    torch.manual_seed(4)
    return (torch.rand(4, 28) > 0.5).float(), torch.rand(4, 5, 6)


OPEN = [{0: "b"}, {0: "b"}]

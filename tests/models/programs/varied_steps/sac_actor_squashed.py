"""SAC actor loss: reparameterised Gaussian, tanh squashing with the change-of-variables term, minimum of two critics.

MISTAKE (may): log(1 - a^2) is -inf once tanh saturates to exactly 1 (|u| > 9 in float32), then the loss is inf and the gradient NaN;
add an epsilon or use 2 * (log 2 - u - softplus(-2u)).
"""
import math
import torch
from torch import nn
import torch.nn.functional as F


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 32), nn.ReLU(), nn.Linear(32, o))


class Step(nn.Module):
    def __init__(self, s=6, a=2, alpha=0.2):
        super().__init__()
        self.pi = mlp(s, 2 * a)
        self.q1, self.q2 = mlp(s + a, 1), mlp(s + a, 1)
        self.alpha = alpha

    def forward(self, obs, eps):
        mu, log_std = self.pi(obs).chunk(2, dim=-1)
        log_std = log_std.clamp(-5, 2)
        u = mu + log_std.exp() * eps
        a = torch.tanh(u)
        logp = -0.5 * eps ** 2 - log_std - 0.5 * math.log(2 * math.pi)
        logp = (logp - torch.log(1 - a.pow(2))).sum(-1)  # fault: invalid-domain
        sa = torch.cat([obs, a], -1)
        q = torch.min(self.q1(sa), self.q2(sa)).squeeze(-1)
        return (self.alpha * logp - q).mean()


class Fixed(Step):
    def forward(self, obs, eps):
        mu, log_std = self.pi(obs).chunk(2, dim=-1)
        log_std = log_std.clamp(-5, 2)
        u = mu + log_std.exp() * eps
        a = torch.tanh(u)
        logp = -0.5 * eps ** 2 - log_std - 0.5 * math.log(2 * math.pi)
        logp = (logp - 2 * (math.log(2.0) - u - F.softplus(-2 * u))).sum(-1)
        sa = torch.cat([obs, a], -1)
        q = torch.min(self.q1(sa), self.q2(sa)).squeeze(-1)
        return (self.alpha * logp - q).mean()


def example():
    torch.manual_seed(1)
    return torch.randn(5, 6), torch.randn(5, 2)


OPEN = [{0: "batch"}, {0: "batch"}]

"""Actor-critic with generalised advantages by a triangular discount matrix.

CORRECT: adv_t = sum over s >= t of (gamma*lam)^(s-t) delta_s, one matmul; the exponent is clamped before the power, the lower triangle is removed. The
value of the last state is a separate input row (T + 1 observations).
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    gamma, lam = 0.99, 0.95

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 24), nn.Tanh())
        self.pi, self.vf = nn.Linear(24, 4), nn.Linear(24, 1)

    def forward(self, obs, act, rew):
        h = self.body(obs)
        v = self.vf(h).squeeze(-1)
        t = rew.shape[1]
        step = torch.arange(t)
        gap = step[:, None] - step[None, :]
        m = torch.pow(torch.tensor(self.gamma * self.lam), gap.clamp(min=0).float()) * (gap >= 0)
        delta = rew + self.gamma * v[:, 1:].detach() - v[:, :-1].detach()
        adv = delta @ m
        logp = self.pi(h[:, :-1]).log_softmax(-1).gather(-1, act[..., None]).squeeze(-1)
        return -(logp * adv).mean() + 0.5 * F.mse_loss(v[:, :-1], adv + v[:, :-1].detach())


def example():
    torch.manual_seed(101)
    return torch.randn(4, 9, 8), torch.randint(0, 4, (4, 8)), torch.randn(4, 8)

"""PPO update with clipped surrogate, value loss and entropy bonus.

MISTAKE (silent): the surrogate takes the larger of the two terms; the pessimistic bound is the smaller.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, clip=0.2):
        super().__init__()
        self.clip = clip
        self.trunk = nn.Sequential(nn.Linear(11, 32), nn.Tanh())
        self.pi, self.v = nn.Linear(32, 5), nn.Linear(32, 1)

    def surrogate(self, ratio, adv):
        bounded = ratio.clamp(1 - self.clip, 1 + self.clip)
        return torch.max(ratio * adv, bounded * adv)  # fault: one-sided-loss

    def forward(self, obs, act, old_logp, adv, ret):
        h = self.trunk(obs)
        logp = F.log_softmax(self.pi(h), -1)
        chosen = logp.gather(1, act.unsqueeze(1)).squeeze(1)
        ratio = (chosen - old_logp).exp()
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        policy = -self.surrogate(ratio, adv).mean()  # fault: one-sided-loss
        value = F.mse_loss(self.v(h).squeeze(-1), ret)
        entropy = -(logp.exp() * logp).sum(-1).mean()
        return policy + 0.5 * value - 0.01 * entropy


class Fixed(Step):
    def surrogate(self, ratio, adv):
        return torch.min(ratio * adv, ratio.clamp(1 - self.clip, 1 + self.clip) * adv)


def example():
    torch.manual_seed(2)
    return torch.randn(8, 11), torch.randint(0, 5, (8,)), -torch.rand(8) * 3, torch.randn(8), torch.randn(8)

"""PPO clipped policy step.

The advantages are meant to be standardised, but the division binds tighter than the
subtraction: adv - (mean / std).  The scale is kept and the offset is wrong.
Fix: (adv - adv.mean()) / (adv.std() + eps).

"""
import torch
from torch import Tensor, nn


class Step(nn.Module):
    def __init__(self, clip=0.2):
        super().__init__()
        self.clip = clip
        self.pi = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 3))

    def standardise(self, adv: Tensor) -> Tensor:
        return adv - adv.mean() / (adv.std() + 1e-8)  # wrong: precedence, mean/std subtracted

    def forward(self, obs, actions, old_logp, adv):
        logp_all = torch.log_softmax(self.pi(obs), dim=-1)
        logp = logp_all.gather(-1, actions[..., None])[..., 0]
        adv = self.standardise(adv)  # fault: divided-before-subtracted
        ratio = torch.exp(logp - old_logp)
        surr = torch.minimum(ratio * adv, ratio.clamp(1 - self.clip, 1 + self.clip) * adv)
        return -surr.mean()


class Fixed(Step):
    def standardise(self, adv):
        return (adv - adv.mean()) / (adv.std() + 1e-8)


def example():
    torch.manual_seed(3)
    return (torch.randn(16, 6), torch.randint(0, 3, (16,)), torch.randn(16) * 0.1 - 1.1, torch.randn(16) + 2)

"""PPO minibatch: clipped policy ratio, clipped value loss and entropy bonus.

CORRECT: the policy term takes the max of the two *negated* surrogates (the same as minus the min), the value term the max of the two errors;
both are the pessimistic choice.
"""
import torch
import torch.nn as nn


class Step(nn.Module):
    def __init__(self, obs=8, acts=4, clip=0.2):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(obs, 32), nn.Tanh())
        self.pi, self.v = nn.Linear(32, acts), nn.Linear(32, 1)
        self.clip = clip

    def forward(self, obs, action, old_logp, adv, old_value, ret):
        h = self.shared(obs)
        lp = torch.log_softmax(self.pi(h), dim=1)
        logp = lp.gather(1, action.unsqueeze(1)).squeeze(1)
        ratio = (logp - old_logp).exp()
        pg1 = -adv * ratio
        pg2 = -adv * ratio.clamp(1 - self.clip, 1 + self.clip)
        pg = torch.max(pg1, pg2).mean()
        v = self.v(h).flatten()
        v_clip = old_value + (v - old_value).clamp(-self.clip, self.clip)
        vf = 0.5 * torch.max((v - ret) ** 2, (v_clip - ret) ** 2).mean()
        ent = -(lp.exp() * lp).sum(1).mean()
        return pg + 0.5 * vf - 0.01 * ent


def example():
    torch.manual_seed(102)
    B = 6
    return torch.randn(B, 8), torch.randint(0, 4, (B,)), -torch.rand(B) - 0.5, torch.randn(B), torch.randn(B), torch.randn(B)


OPEN = [{0: "batch"}] * 6

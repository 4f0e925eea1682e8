"""PPO update for a discrete lander policy.

MISTAKE (silent): the clipped surrogate takes the maximum of both terms before the minus; it must take the minimum.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class ActorCritic(nn.Module):
    def __init__(self, obs=8, actions=4, hidden=32):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(obs, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.actor = nn.Linear(hidden, actions)
        self.critic = nn.Linear(hidden, 1)

    def forward(self, obs):
        h = self.trunk(obs)
        return F.log_softmax(self.actor(h), dim=-1), self.critic(h).squeeze(-1)


class Step(nn.Module):
    def __init__(self, clip=0.2, vf_coef=0.5, ent_coef=0.01):
        super().__init__()
        self.ac = ActorCritic()
        self.clip, self.vf_coef, self.ent_coef = clip, vf_coef, ent_coef

    def terms(self, obs, action, old_logp, ret):
        logp_all, value = self.ac(obs)
        logp = logp_all.gather(1, action[:, None]).squeeze(1)
        entropy = -(logp_all.exp() * logp_all).sum(-1).mean()
        return torch.exp(logp - old_logp), F.mse_loss(value, ret), entropy

    def forward(self, obs, action, old_logp, adv, ret):
        ratio, value_loss, entropy = self.terms(obs, action, old_logp, ret)
        surr1 = ratio * adv
        surr2 = torch.clamp(ratio, 1 - self.clip, 1 + self.clip) * adv
        policy_loss = -torch.max(surr1, surr2).mean()  # fault: one-sided-loss
        return policy_loss + self.vf_coef * value_loss - self.ent_coef * entropy


class Fixed(Step):
    def forward(self, obs, action, old_logp, adv, ret):
        ratio, value_loss, entropy = self.terms(obs, action, old_logp, ret)
        surr1 = ratio * adv
        surr2 = torch.clamp(ratio, 1 - self.clip, 1 + self.clip) * adv
        policy_loss = -torch.min(surr1, surr2).mean()
        return policy_loss + self.vf_coef * value_loss - self.ent_coef * entropy


def example():
    g = torch.Generator().manual_seed(1)
    return (
        torch.randn(6, 8, generator=g),
        torch.randint(0, 4, (6,), generator=g),
        -1.4 + 0.5 * torch.randn(6, generator=g),
        torch.randn(6, generator=g),
        torch.randn(6, generator=g),
    )


OPEN = [{0: "batch"}] * 5

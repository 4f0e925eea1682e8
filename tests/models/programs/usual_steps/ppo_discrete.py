"""Ppo discrete.

CORRECT: max of the negated surrogates is the pessimistic PPO bound.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Agent(nn.Module):
    def __init__(self, obs_dim=13, n_act=6, hidden=48):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, n_act))
        self.critic = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, 1))


class Step(nn.Module):
    def __init__(self, clip_coef=0.2, vf_coef=0.5, ent_coef=0.01):
        super().__init__()
        self.agent = Agent()
        self.clip_coef, self.vf_coef, self.ent_coef = clip_coef, vf_coef, ent_coef

    def forward(self, obs, actions, old_logp, adv, returns, old_values):
        logp_all = F.log_softmax(self.agent.actor(obs), dim=1)
        logp = logp_all.gather(1, actions[:, None]).view(-1)
        logratio = logp - old_logp
        ratio = logratio.exp()
        approx_kl = ((ratio - 1) - logratio).mean().detach()
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        pg1 = -adv * ratio
        pg2 = -adv * torch.clamp(ratio, 1 - self.clip_coef, 1 + self.clip_coef)
        pg_loss = torch.max(pg1, pg2).mean()
        value = self.agent.critic(obs).view(-1)
        v_clip = old_values + torch.clamp(value - old_values, -self.clip_coef, self.clip_coef)
        v_loss = 0.5 * torch.max((value - returns) ** 2, (v_clip - returns) ** 2).mean()
        entropy = -(logp_all.exp() * logp_all).sum(1).mean()
        return pg_loss + self.vf_coef * v_loss - self.ent_coef * entropy, approx_kl


def example():
    torch.manual_seed(0)
    n = 34
    return torch.randn(n, 13), torch.randint(0, 6, (n,)), -1.8 + 0.1 * torch.randn(n), torch.randn(n), torch.randn(n), torch.randn(n)

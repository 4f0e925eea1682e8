"""Ppo minibatch.

CORRECT: PPO with torch.max of the negated surrogates (CleanRL spelling), clipped value loss.
"""
import torch
import torch.nn as nn
from torch.distributions import Categorical


class Agent(nn.Module):
    def __init__(self, obs_dim, n_act):
        super().__init__()
        self.critic = nn.Sequential(nn.Linear(obs_dim, 32), nn.Tanh(), nn.Linear(32, 1))
        self.actor = nn.Sequential(nn.Linear(obs_dim, 32), nn.Tanh(), nn.Linear(32, n_act))


class Step(nn.Module):
    def __init__(self, clip=0.2, vf=0.5, ent=0.01):
        super().__init__()
        self.agent = Agent(6, 4)
        self.clip, self.vf, self.ent = clip, vf, ent

    def forward(self, obs, actions, old_logprob, advantages, returns, old_values):
        dist = Categorical(logits=self.agent.actor(obs), validate_args=False)
        newlogprob = dist.log_prob(actions)
        ratio = (newlogprob - old_logprob).exp()

        adv = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        pg_loss1 = -adv * ratio
        pg_loss2 = -adv * torch.clamp(ratio, 1 - self.clip, 1 + self.clip)
        pg_loss = torch.max(pg_loss1, pg_loss2).mean()

        newvalue = self.agent.critic(obs).view(-1)
        v_unclipped = (newvalue - returns) ** 2
        v_clipped = old_values + torch.clamp(newvalue - old_values, -self.clip, self.clip)
        v_loss = 0.5 * torch.max(v_unclipped, (v_clipped - returns) ** 2).mean()

        return pg_loss - self.ent * dist.entropy().mean() + self.vf * v_loss


def example():
    torch.manual_seed(15)
    n = 10
    return (torch.randn(n, 6), torch.randint(0, 4, (n,)), -torch.rand(n) - 0.9,
            torch.randn(n), torch.randn(n), torch.randn(n))

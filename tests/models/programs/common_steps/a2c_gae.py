"""A2c gae.

MISTAKE (silent): TD error bootstraps from V(s_t), the next value needs the slice v[:, 1:].
"""
import torch
import torch.nn as nn


class ActorCritic(nn.Module):
    def __init__(self, obs=5, act=3, hid=24):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(obs, hid), nn.ReLU())
        self.pi = nn.Linear(hid, act)
        self.v = nn.Linear(hid, 1)

    def forward(self, obs):
        h = self.shared(obs)
        return self.pi(h), self.v(h).squeeze(-1)


class Step(nn.Module):
    """Rollout of T steps for N envs; obs carries T+1 frames (the last one only to bootstrap)."""

    def __init__(self, gamma=0.99, lam=0.95):
        super().__init__()
        self.ac = ActorCritic()
        self.gamma, self.lam = gamma, lam

    def forward(self, obs, actions, rewards, dones):
        logits, values = self.ac(obs)                       # (N, T+1, A), (N, T+1)
        not_done = 1.0 - dones
        v = values.detach()
        delta = rewards + self.gamma * v[:, :-1] * not_done - v[:, :-1]  # fault: error-without-next-value
        T = rewards.size(1)
        adv, running = [], torch.zeros_like(rewards[:, 0])
        for t in reversed(range(T)):
            running = delta[:, t] + self.gamma * self.lam * not_done[:, t] * running
            adv.insert(0, running)
        adv = torch.stack(adv, dim=1)
        returns = adv + v[:, :-1]
        logp = torch.log_softmax(logits[:, :-1], dim=-1)
        chosen = logp.gather(-1, actions.unsqueeze(-1)).squeeze(-1)
        entropy = -(logp.exp() * logp).sum(-1).mean()
        value_loss = (returns - values[:, :-1]).pow(2).mean()
        return -(chosen * adv).mean() + 0.5 * value_loss - 0.01 * entropy


def example():
    torch.manual_seed(19)
    n, t = 4, 6
    return (torch.randn(n, t + 1, 5), torch.randint(0, 3, (n, t)),
            torch.randn(n, t), (torch.rand(n, t) < 0.1).float())

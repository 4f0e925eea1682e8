"""Ac entropy.

MISTAKE (silent): the entropy bonus has to be subtracted, this minimises the entropy.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Policy(nn.Module):
    def __init__(self, s_size=8, h_size=32, a_size=4):
        super().__init__()
        self.affine1 = nn.Linear(s_size, h_size)
        self.action_head = nn.Linear(h_size, a_size)
        self.value_head = nn.Linear(h_size, 1)

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


class Step(nn.Module):
    """LunarLander actor-critic; the returns are computed by the rollout worker."""

    def __init__(self, value_coef=0.5, entropy_coef=0.01):
        super().__init__()
        self.policy = Policy()
        self.value_coef = value_coef
        self.entropy_coef = entropy_coef

    def forward(self, states, actions, returns):
        probs, state_value = self.policy(states)
        log_probs = torch.log(probs + 1e-8)
        action_log_probs = log_probs.gather(1, actions.view(-1, 1)).squeeze(1)
        advantage = returns - state_value.squeeze(1)
        actor_loss = -(action_log_probs * advantage.detach()).mean()
        critic_loss = advantage.pow(2).mean()
        entropy = -(probs * log_probs).sum(dim=1).mean()
        loss = actor_loss + self.value_coef * critic_loss + self.entropy_coef * entropy  # fault: one-sided-loss
        return loss, entropy


def example():
    g = torch.Generator().manual_seed(26)
    n = 12
    return (torch.randn(n, 8, generator=g), torch.randint(0, 4, (n,), generator=g),
            torch.randn(n, generator=g))

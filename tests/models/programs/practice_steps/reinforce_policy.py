"""REINFORCE with a learned baseline.

MISTAKE (silent): the policy term has no minus; minimising log_prob * advantage makes good actions less
likely.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class PolicyValue(nn.Module):
    def __init__(self, obs=8, n_act=4, hidden=32):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(obs, hidden), nn.Tanh())
        self.pi = nn.Linear(hidden, n_act)
        self.v = nn.Linear(hidden, 1)

    def forward(self, s):
        h = self.trunk(s)
        return self.pi(h), self.v(h).squeeze(-1)


class Step(nn.Module):
    vf_coef = 0.5

    def __init__(self):
        super().__init__()
        self.net = PolicyValue()

    def forward(self, states, actions, returns):
        # returns: discounted return from each visited state
        logits, value = self.net(states)
        log_prob = F.log_softmax(logits, dim=-1).gather(-1, actions.unsqueeze(-1)).squeeze(-1)
        advantage = returns - value.detach()
        policy_loss = (log_prob * advantage).mean()  # fault: policy-without-minus
        return policy_loss + self.vf_coef * F.mse_loss(value, returns)


class Fixed(Step):
    def forward(self, states, actions, returns):
        # returns: discounted return from each visited state
        logits, value = self.net(states)
        log_prob = F.log_softmax(logits, dim=-1).gather(-1, actions.unsqueeze(-1)).squeeze(-1)
        advantage = returns - value.detach()
        policy_loss = -(log_prob * advantage).mean()
        return policy_loss + self.vf_coef * F.mse_loss(value, returns)


def example():
    g = torch.Generator().manual_seed(1)
    return (
        torch.randn(7, 8, generator=g),
        torch.randint(0, 4, (7,), generator=g),
        torch.randn(7, generator=g) * 2 + 1,
    )


OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]

"""A2C policy term for a card game with illegal actions masked out, with an entropy bonus written by hand.

MISTAKE (may): an illegal action has probability exactly 0 and log-probability -inf, and 0 * -inf is NaN in the entropy as soon as one action is illegal;
mask the product (torch.where) or fill with a finite number.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, obs=10, actions=6):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(obs, 32), nn.Tanh(), nn.Linear(32, actions))

    def forward(self, obs, legal, action, advantage):
        logits = self.actor(obs).masked_fill(~legal, float("-inf"))
        logp = torch.log_softmax(logits, dim=-1).gather(1, action[:, None])[:, 0]
        pg = -(logp * advantage).mean()
        p, lp = logits.softmax(-1), logits.log_softmax(-1)
        entropy = -(p * lp).sum(-1)  # fault: invalid-domain
        return pg - 0.01 * entropy.mean()


class Fixed(Step):
    def forward(self, obs, legal, action, advantage):
        logits = self.actor(obs).masked_fill(~legal, float("-inf"))
        logp = torch.log_softmax(logits, dim=-1).gather(1, action[:, None])[:, 0]
        pg = -(logp * advantage).mean()
        p, lp = logits.softmax(-1), logits.log_softmax(-1).masked_fill(~legal, 0.0)
        entropy = -(p * lp).sum(-1)
        return pg - 0.01 * entropy.mean()


def example():
    torch.manual_seed(2)
    legal = torch.rand(4, 6) < 0.7
    legal[:, 0] = True
    return torch.randn(4, 10), legal, torch.zeros(4, dtype=torch.long), torch.randn(4)

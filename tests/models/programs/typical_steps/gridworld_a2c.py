"""Advantage actor-critic on grid pictures.

MISTAKE (silent): the entropy bonus is added to the loss, so entropy is minimised; it should be subtracted.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class GridAgent(nn.Module):
    def __init__(self, planes=3, actions=5):
        super().__init__()
        self.conv = nn.Conv2d(planes, 8, 3, padding=1)
        self.fc = nn.Linear(8 * 8 * 8, 16)
        self.pi = nn.Linear(16, actions)
        self.v = nn.Linear(16, 1)

    def forward(self, grid):
        h = F.relu(self.conv(grid)).flatten(1)
        h = F.relu(self.fc(h))
        return self.pi(h), self.v(h)


class Step(nn.Module):
    def __init__(self, value_coef=0.5, entropy_coef=0.01):
        super().__init__()
        self.agent = GridAgent()
        self.value_coef = value_coef
        self.entropy_coef = entropy_coef

    def forward(self, grid, action, returns):
        logits, value = self.agent(grid)
        log_probs = F.log_softmax(logits, dim=1)
        probs = F.softmax(logits, dim=1)
        entropy = -(probs * log_probs).sum(dim=1).mean()  # fault: entropy-lowered
        advantage = returns.unsqueeze(1) - value
        chosen = log_probs.gather(1, action.unsqueeze(1))
        actor_loss = -(chosen * advantage.detach()).mean()
        critic_loss = advantage.pow(2).mean()
        return actor_loss + self.value_coef * critic_loss + self.entropy_coef * entropy


class Fixed(Step):
    def forward(self, grid, action, returns):
        logits, value = self.agent(grid)
        log_probs = F.log_softmax(logits, dim=1)
        probs = F.softmax(logits, dim=1)
        entropy = -(probs * log_probs).sum(dim=1).mean()
        advantage = returns.unsqueeze(1) - value
        chosen = log_probs.gather(1, action.unsqueeze(1))
        actor_loss = -(chosen * advantage.detach()).mean()
        critic_loss = advantage.pow(2).mean()
        return actor_loss + self.value_coef * critic_loss - self.entropy_coef * entropy


def example():
    g = torch.Generator().manual_seed(1)
    return (
        torch.rand(6, 3, 8, 8, generator=g),
        torch.randint(0, 5, (6,), generator=g),
        torch.randn(6, generator=g),
    )


OPEN = [{0: "batch"}] * 3

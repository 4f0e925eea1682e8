"""Policy gradient on whole episodes with discounted reward-to-go.

MISTAKE (silent): the discounted rewards are cumulated from the start of the episode (what has been earned
before the action) and not from the step to the end; a flip before and after the cumsum is missing.
"""
import torch
import torch.nn as nn


class Actor(nn.Module):
    def __init__(self, obs=6, act=3):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, act))

    def forward(self, obs):
        return torch.log_softmax(self.net(obs), dim=-1)


class Step(nn.Module):
    def __init__(self, gamma=0.97, horizon=10):
        super().__init__()
        self.actor = Actor()
        self.register_buffer("discount", gamma ** torch.arange(horizon, dtype=torch.float32))

    def forward(self, obs, actions, rewards):
        # obs [episodes, steps, obs], actions and rewards [episodes, steps]
        logp = self.actor(obs)
        logp_a = torch.gather(logp, 2, actions.unsqueeze(2)).squeeze(2)
        # reward-to-go: sum_{k >= t} gamma^(k - t) r_k
        ret = torch.cumsum(rewards * self.discount, dim=1) / self.discount  # fault: rewards-so-far
        adv = (ret - ret.mean()) / (ret.std() + 1e-8)
        return -(logp_a * adv).sum(dim=1).mean()


class Fixed(Step):
    def forward(self, obs, actions, rewards):
        # obs [episodes, steps, obs], actions and rewards [episodes, steps]
        logp = self.actor(obs)
        logp_a = torch.gather(logp, 2, actions.unsqueeze(2)).squeeze(2)
        ret = torch.cumsum((rewards * self.discount).flip(1), dim=1).flip(1) / self.discount
        adv = (ret - ret.mean()) / (ret.std() + 1e-8)
        return -(logp_a * adv).sum(dim=1).mean()


def example():
    g = torch.Generator().manual_seed(1)
    return (
        torch.randn(5, 10, 6, generator=g),
        torch.randint(0, 3, (5, 10), generator=g),
        torch.rand(5, 10, generator=g),
    )

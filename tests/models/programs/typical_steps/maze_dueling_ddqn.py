"""Dueling double DQN with prioritised replay weights.

CORRECT: advantages centred over actions (dim=1), argmax from the online net, value from the target net, all of shape [N, 1].
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class DuelingNet(nn.Module):
    def __init__(self, obs=10, actions=4, hidden=32):
        super().__init__()
        self.body = nn.Linear(obs, hidden)
        self.value = nn.Linear(hidden, 1)
        self.adv = nn.Linear(hidden, actions)

    def forward(self, s):
        h = F.relu(self.body(s))
        adv = self.adv(h)
        return self.value(h) + adv - adv.mean(dim=1, keepdim=True)


class Step(nn.Module):
    def __init__(self, gamma=0.95):
        super().__init__()
        self.online = DuelingNet()
        self.target = DuelingNet()
        self.gamma = gamma

    def forward(self, s, a, r, s2, not_done, weight):
        q = self.online(s).gather(1, a.unsqueeze(1))
        best = self.online(s2).argmax(dim=1, keepdim=True)
        q2 = self.target(s2).gather(1, best).detach()
        y = r.view(-1, 1) + self.gamma * not_done.view(-1, 1) * q2
        td = F.smooth_l1_loss(q, y, reduction="none")
        return (weight.unsqueeze(1) * td).mean()


def example():
    g = torch.Generator().manual_seed(1)
    return (
        torch.randn(6, 10, generator=g),
        torch.randint(0, 4, (6,), generator=g),
        torch.randn(6, generator=g),
        torch.randn(6, 10, generator=g),
        torch.tensor([1.0, 1.0, 0.0, 1.0, 0.0, 1.0]),
        torch.rand(6, generator=g) * 0.5 + 0.5,
    )


OPEN = [{0: "batch"}] * 6

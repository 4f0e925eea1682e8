import copy

import torch
from torch import nn


class DQN(nn.Module):
    gamma = 0.99

    def __init__(self):
        super().__init__()
        self.online = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3))
        self.target = copy.deepcopy(self.online)
        for p in self.target.parameters():
            p.requires_grad_(False)

    def forward(self, s, a, r, s2, done):
        q = self.online(s).gather(1, a.unsqueeze(1))  # fault: silent-broadcast-in-loss
        q2 = self.target(s2).max(dim=1)[0]
        y = r + self.gamma * (1.0 - done) * q2
        td = torch.abs(q - y)  # fault: silent-broadcast-in-loss
        return torch.where(td < 1.0, 0.5 * td ** 2, td - 0.5).mean()


def example():
    n = 10
    return (torch.randn(n, 6), torch.randint(0, 3, (n,)), torch.randn(n), torch.randn(n, 6), (torch.rand(n) < .2).float())


Step = DQN
OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}, {0: "batch"}, {0: "batch"}]

import torch
from torch import nn


class DoubleDQN(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 2))
        self.q_targ = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 2))

    def forward(self, s, a, r, s2, done):
        # a, r, done: [N, 1] as stored in the replay buffer
        q = self.q(s).gather(1, a)
        with torch.no_grad():
            best = self.q(s2).argmax(dim=1, keepdim=True)
            y = r + 0.99 * (1 - done) * self.q_targ(s2).gather(1, best)
        return (q - y).pow(2).mean()


def example():
    n = 9
    return (torch.randn(n, 4), torch.randint(0, 2, (n, 1)), torch.randn(n, 1), torch.randn(n, 4), (torch.rand(n, 1) > .8).float())


Step = DoubleDQN

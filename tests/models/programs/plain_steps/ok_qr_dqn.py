import torch
from torch import nn


class QRDQN(nn.Module):
    def __init__(self, n=8, actions=3):
        super().__init__()
        self.n, self.a = n, actions
        self.net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, n * actions))
        self.register_buffer("tau", (torch.arange(n) + 0.5) / n)

    def forward(self, s, a, target_quantiles):
        theta = self.net(s).view(-1, self.a, self.n)
        theta = theta.gather(1, a.view(-1, 1, 1).expand(-1, 1, self.n)).squeeze(1)
        u = target_quantiles.unsqueeze(1) - theta.unsqueeze(2)
        huber = torch.where(u.abs() <= 1, 0.5 * u ** 2, u.abs() - 0.5)
        rho = (self.tau.view(1, -1, 1) - (u.detach() < 0).float()).abs() * huber
        return rho.mean(2).sum(1).mean()


def example():
    return (torch.randn(5, 6), torch.randint(0, 3, (5,)), torch.randn(5, 8))


Step = QRDQN

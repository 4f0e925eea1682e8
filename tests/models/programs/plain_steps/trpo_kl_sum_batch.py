import torch
from torch import nn


class PolicyKL(nn.Module):
    """KL(old || new) penalty, adaptive-KL PPO"""

    def __init__(self, beta=1.0):
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 6))
        self.beta = beta

    def forward(self, obs, old_logp, act, adv):
        logp = torch.log_softmax(self.pi(obs), dim=-1)
        kl = (old_logp.exp() * (old_logp - logp)).sum(0).mean()  # fault: reduction-over-batch-axis
        ratio = torch.exp((logp - old_logp).gather(1, act[:, None])[:, 0])
        return -(ratio * adv).mean() + self.beta * kl


def example():
    return (torch.randn(32, 5), torch.randn(32, 6).log_softmax(-1), torch.randint(0, 6, (32,)), torch.randn(32))


Step = PolicyKL
OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}, {0: "batch"}]

"""Mnist gan.

MISTAKE (silent): generator is rewarded for being recognised as fake, target must be ones.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class G(nn.Module):
    def __init__(self, z=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(z, 128), nn.LeakyReLU(0.2), nn.Linear(128, 784), nn.Tanh())

    def forward(self, z):
        return self.net(z)


class D(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(784, 128), nn.LeakyReLU(0.2), nn.Linear(128, 1))

    def forward(self, x):
        return self.net(x)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.G, self.D = G(), D()

    def forward(self, real, z):
        ones = torch.ones(real.shape[0], 1)
        zeros = torch.zeros(real.shape[0], 1)
        fake = self.G(z)
        loss_d = F.binary_cross_entropy_with_logits(self.D(real.flatten(1)), ones) \
            + F.binary_cross_entropy_with_logits(self.D(fake.detach()), zeros)
        loss_g = F.binary_cross_entropy_with_logits(self.D(fake), zeros)  # fault: swapped-loss-sides
        return loss_d, loss_g


def example():
    torch.manual_seed(0)
    return torch.rand(32, 1, 28, 28) * 2 - 1, torch.randn(32, 32)

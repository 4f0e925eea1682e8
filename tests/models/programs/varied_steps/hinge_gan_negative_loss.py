"""Hinge GAN with a projection discriminator; discriminator and generator loss are returned apart for their two optimizers.

CORRECT: the generator loss is the plain negative mean of the critic and may be negative; the critic returns (B,) from (B, 1) plus an inner product (B,), both brought to one axis first.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Critic(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 20), nn.LeakyReLU(0.2))
        self.lin = nn.Linear(20, 1)
        self.emb = nn.Embedding(classes, 20)

    def forward(self, x, y):
        h = self.body(x)
        return self.lin(h)[:, 0] + torch.einsum("bd,bd->b", self.emb(y), h)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(4, 5)
        self.gen = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 12), nn.Tanh())
        self.critic = Critic()

    def forward(self, real, y, z):
        fake = self.gen(torch.cat([z, self.emb(y)], dim=1))
        d_real, d_fake = self.critic(real, y), self.critic(fake.detach(), y)
        d_loss = F.relu(1 - d_real).mean() + F.relu(1 + d_fake).mean()
        g_loss = -self.critic(fake, y).mean()
        return d_loss, g_loss


def example():
    torch.manual_seed(14)
    return torch.randn(6, 12).tanh(), torch.randint(0, 4, (6,)), torch.randn(6, 5)


OPEN = [{0: "b"}, {0: "b"}, {0: "b"}]

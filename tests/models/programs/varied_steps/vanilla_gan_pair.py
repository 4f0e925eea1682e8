"""Vanilla GAN in one pass: discriminator loss and the non-saturating generator loss on 2-layer nets.

MISTAKE (may): log(D) and log(1 - D) are taken of a sigmoid, which reaches exactly 0 or 1 in float32 and gives inf; logsigmoid of the logit is right.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, z=6, d=10):
        super().__init__()
        self.G = nn.Sequential(nn.Linear(z, 24), nn.ReLU(), nn.Linear(24, d))
        self.D = nn.Sequential(nn.Linear(d, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))

    def log_real(self, logit):
        return torch.log(torch.sigmoid(logit))  # fault: invalid-domain

    def log_fake(self, logit):
        return torch.log(1 - torch.sigmoid(logit))  # fault: invalid-domain

    def forward(self, real, z):
        fake = self.G(z)
        d_loss = -(self.log_real(self.D(real)) + self.log_fake(self.D(fake.detach()))).mean()  # fault: invalid-domain
        g_loss = -self.log_real(self.D(fake)).mean()
        return d_loss, g_loss


class Fixed(Step):
    def log_real(self, logit):
        return F.logsigmoid(logit)

    def log_fake(self, logit):
        return F.logsigmoid(-logit)


def example():
    torch.manual_seed(107)
    return 3000 * torch.randn(6, 10), torch.randn(6, 6)


OPEN = [{0: "b"}, {0: "b"}]

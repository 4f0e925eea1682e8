"""Trains the discriminator of a bedroom GAN with the relativistic average hinge loss."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.g_fc = nn.Linear(12, 6 * 5 * 5)
        self.g_up = nn.ConvTranspose2d(6, 3, 4, stride=2, padding=1)
        self.d_conv = nn.Conv2d(3, 14, 3, stride=2)
        self.d_out = nn.Linear(14, 1)

    def generate(self, z):
        return torch.tanh(self.g_up(F.relu(self.g_fc(z)).view(-1, 6, 5, 5)))

    def judge(self, img):
        h = F.leaky_relu(self.d_conv(img), 0.1)
        return self.d_out(h.mean((2, 3)))

    def forward(self, rooms, z):
        r = self.judge(rooms)
        f = self.judge(self.generate(z).detach())
        real_above = r - f.mean(0, keepdim=True)
        fake_above = f - r.mean(0, keepdim=True)
        return F.relu(1 - real_above).mean() + F.relu(1 + fake_above).mean()


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.rand(11, 3, 10, 10) * 2 - 1, torch.randn(8, 12))

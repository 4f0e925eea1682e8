"""Trains the two generators of a CycleGAN. The second cycle is compared with the translated picture instead of the zebra it started from; it should be l1(rec_b, b)."""
import torch
import torch.nn.functional as F
from torch import nn


def small_generator(ch=8):
    return nn.Sequential(
        nn.Conv2d(3, ch, 3, padding=1), nn.ReLU(),
        nn.Conv2d(ch, ch, 3, padding=1), nn.ReLU(),
        nn.Conv2d(ch, 3, 3, padding=1), nn.Tanh(),
    )


def small_discriminator(ch=8):
    d = nn.Sequential(nn.Conv2d(3, ch, 4, stride=2), nn.LeakyReLU(0.2), nn.Conv2d(ch, 1, 3))
    return d.requires_grad_(False)


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.to_b, self.to_a = small_generator(), small_generator()
        self.d_a, self.d_b = small_discriminator(), small_discriminator()

    def forward(self, a, b):
        fake_b, fake_a = self.to_b(a), self.to_a(b)
        rec_a, rec_b = self.to_a(fake_b), self.to_b(fake_a)
        adv = (self.d_b(fake_b) - 1).square().mean() + (self.d_a(fake_a) - 1).square().mean()
        cycle_a = F.l1_loss(rec_a, a)
        cycle_b = F.l1_loss(rec_b, fake_b)  # fault: cycle-not-closed
        return adv + 10.0 * (cycle_a + cycle_b)


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.rand(2, 3, 18, 22) * 2 - 1, torch.rand(2, 3, 18, 22) * 2 - 1)

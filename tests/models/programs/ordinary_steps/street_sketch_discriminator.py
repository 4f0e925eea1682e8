"""Trains the conditional discriminator that tells real street photos from photos generated from sketches. The fake term scores the real photo once more instead of the generated one; it should score the generated photo."""
import torch
import torch.nn as nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.G = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 3, 3, padding=1), nn.Tanh())
        self.D = nn.Sequential(nn.Conv2d(4, 14, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(14, 1, 4, 1, 1))
        self.gan_loss = nn.BCEWithLogitsLoss()

    def forward(self, sketch, photo):
        generated = self.G(sketch)  # noqa: F841
        pred_real = self.D(torch.cat((sketch, photo), 1))
        pred_fake = self.D(torch.cat((sketch, photo), 1))  # fault: labels-contradict
        loss_real = self.gan_loss(pred_real, torch.ones_like(pred_real))
        loss_fake = self.gan_loss(pred_fake, torch.zeros_like(pred_fake))  # fault: labels-contradict
        return (loss_real + loss_fake) * 0.5


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.rand(3, 1, 20, 24), torch.rand(3, 3, 20, 24) * 2 - 1)

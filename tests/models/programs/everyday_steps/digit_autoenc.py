"""Digit autoenc.

MISTAKE (silent): target stays in 0..255 while the decoder ends in a sigmoid (0..1).
"""
import torch
import torch.nn as nn


class AE(nn.Module):
    def __init__(self, z=16):
        super().__init__()
        self.enc = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 128), nn.ReLU(), nn.Linear(128, z))
        self.dec = nn.Sequential(nn.Linear(z, 128), nn.ReLU(), nn.Linear(128, 28 * 28), nn.Sigmoid())

    def forward(self, x):
        z = self.enc(x)
        return self.dec(z), z


class Step(nn.Module):
    def __init__(self, sparsity=1e-3):
        super().__init__()
        self.ae = AE()
        self.sparsity = sparsity

    def forward(self, img):
        x = img.float() / 255.0
        recon, z = self.ae(x)
        target = img.flatten(1).float()  # fault: bytes-not-scaled
        rec = ((recon - target) ** 2).mean()  # fault: bytes-not-scaled
        return rec + self.sparsity * z.abs().mean()


def example():
    torch.manual_seed(0)
    return (torch.randint(0, 256, (64, 28, 28), dtype=torch.uint8),)

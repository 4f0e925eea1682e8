"""Convolutional autoencoder for anomaly detection (MVTec style).

MISTAKE (silent): sigmoid decoder output compared with a target scaled to [-1, 1].
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, latent):
        super().__init__()
        self.c1 = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.c2 = nn.Conv2d(16, latent, 3, stride=2, padding=1)

    def forward(self, x):
        return self.c2(F.relu(self.c1(x)))


class Decoder(nn.Module):
    def __init__(self, latent):
        super().__init__()
        self.d1 = nn.ConvTranspose2d(latent, 16, 4, stride=2, padding=1)
        self.d2 = nn.ConvTranspose2d(16, 3, 4, stride=2, padding=1)

    def forward(self, z):
        y = F.relu(self.d1(F.relu(z)))
        return torch.sigmoid(self.d2(y))  # fault: prediction-never-negative


class Step(nn.Module):
    def __init__(self, latent=8):
        super().__init__()
        self.encoder = Encoder(latent)
        self.decoder = Decoder(latent)

    def forward(self, image):
        x = image.float() / 255.0
        x = (x - 0.5) / 0.5
        recon = self.decoder(self.encoder(x))
        err = (recon - x).pow(2)  # fault: prediction-never-negative
        return err.mean(), err.mean(dim=1)


def example():
    g = torch.Generator().manual_seed(45)
    return (torch.randint(0, 256, (4, 3, 16, 16), generator=g, dtype=torch.uint8),)

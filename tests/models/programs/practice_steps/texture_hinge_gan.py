"""Class-conditional GAN with hinge losses and a projection discriminator.

CORRECT: the generator loss is minus the mean score and has no hinge, the discriminator uses relu(1 - real) and
relu(1 + fake); the score is negative or positive without bound.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Generator(nn.Module):
    def __init__(self, nz=8, n_class=4, ch=16):
        super().__init__()
        self.cls = nn.Embedding(n_class, nz)
        self.fc = nn.Linear(2 * nz, ch * 4 * 4)
        self.conv1 = nn.Conv2d(ch, ch, 3, padding=1)
        self.conv2 = nn.Conv2d(ch, 1, 3, padding=1)
        self.ch = ch

    def forward(self, z, y):
        h = self.fc(torch.cat([z, self.cls(y)], dim=1)).view(-1, self.ch, 4, 4)
        h = F.relu(self.conv1(F.interpolate(h, scale_factor=2.0, mode="nearest")))
        return torch.tanh(self.conv2(F.interpolate(h, scale_factor=2.0, mode="nearest")))


class ProjectionDiscriminator(nn.Module):
    def __init__(self, n_class=4, ch=12):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, ch, 3, stride=2, padding=1), nn.LeakyReLU(0.2),
            nn.Conv2d(ch, ch, 3, stride=2, padding=1), nn.LeakyReLU(0.2),
        )
        self.linear = nn.Linear(ch, 1)
        self.embed = nn.Embedding(n_class, ch)

    def forward(self, x, y):
        h = self.body(x).sum(dim=(2, 3))
        return self.linear(h) + (self.embed(y) * h).sum(dim=1, keepdim=True)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.G = Generator()
        self.D = ProjectionDiscriminator()

    def forward(self, real, label, z, z_label):
        fake = self.G(z, z_label)
        d_real = self.D(real, label)
        d_fake = self.D(fake.detach(), z_label)
        loss_d = F.relu(1.0 - d_real).mean() + F.relu(1.0 + d_fake).mean()
        loss_g = -self.D(fake, z_label).mean()
        return loss_d, loss_g


def example():
    g = torch.Generator().manual_seed(1)
    return (
        torch.rand(5, 1, 16, 16, generator=g) * 2 - 1,
        torch.randint(0, 4, (5,), generator=g),
        torch.randn(5, 8, generator=g),
        torch.randint(0, 4, (5,), generator=g),
    )

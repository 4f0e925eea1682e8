import torch
from torch import nn


class ConvVAE(nn.Module):
    latent = 10

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, 8, 4, 2, 1), nn.LeakyReLU(0.1), nn.Flatten())
        self.fc_mu = nn.Linear(8 * 7 * 7, self.latent)
        self.fc_var = nn.Linear(8 * 7 * 7, self.latent)
        self.decoder = nn.Sequential(nn.Linear(self.latent, 196), nn.Sigmoid())

    def forward(self, x, noise):
        h = self.encoder(x)
        mu, log_var = self.fc_mu(h), self.fc_var(h)
        z = mu + noise * (0.5 * log_var).exp()
        recons = self.decoder(z).view(-1, 1, 14, 14)
        recons_loss = ((recons - x) ** 2).mean()
        kld_loss = torch.mean(-0.5 * torch.sum(1 + log_var - mu ** 2 - log_var.exp(), dim=0), dim=0)  # fault: reduction-over-batch-axis
        return recons_loss + 0.00025 * kld_loss


def example():
    return (torch.rand(16, 1, 14, 14), torch.randn(16, 10))


Step = ConvVAE

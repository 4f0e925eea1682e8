import torch
import torch.nn.functional as F
from torch import nn


class VAE(nn.Module):
    def __init__(self, d=64, z=4):
        super().__init__()
        self.enc = nn.Linear(d, 2 * z)
        self.dec = nn.Linear(z, d)

    def forward(self, x, eps):
        mu, logvar = self.enc(x).chunk(2, dim=1)
        z = mu + eps * torch.exp(0.5 * logvar)
        recon = self.dec(z)
        rec = F.binary_cross_entropy_with_logits(recon, x, reduction="none").sum(dim=1)  # fault: no-rule
        kld = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(dim=1).mean()
        return rec + kld


def example():
    return (torch.rand(6, 64), torch.randn(6, 4))


Step = VAE
OPEN = [{0: "batch"}, {0: "batch"}]

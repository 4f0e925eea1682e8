"""VAE for gene counts with a Poisson likelihood, KL warm-up weight and free bits.

CORRECT: log-rates with poisson_nll_loss (log_input), KL summed over latents after the mean over the batch and a floor per dimension, exp(0.5 logvar).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class CountVAE(nn.Module):
    def __init__(self, genes=40, hidden=24, latent=5):
        super().__init__()
        self.enc = nn.Linear(genes, hidden)
        self.stats = nn.Linear(hidden, 2 * latent)
        self.dec = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, genes))

    def forward(self, counts):
        mu, logvar = self.stats(F.relu(self.enc(torch.log1p(counts)))).chunk(2, dim=-1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar


class Step(nn.Module):
    def __init__(self, free_bits=0.1):
        super().__init__()
        self.vae = CountVAE()
        self.free_bits = free_bits

    def forward(self, counts, beta):
        counts = counts.float()
        library = counts.sum(dim=1, keepdim=True).clamp(min=1.0)
        logits, mu, logvar = self.vae(counts)
        log_rate = F.log_softmax(logits, dim=-1) + library.log()
        recon = F.poisson_nll_loss(log_rate, counts, log_input=True, reduction="none").sum(dim=1).mean()
        kl_dim = 0.5 * (mu ** 2 + logvar.exp() - logvar - 1.0).mean(dim=0)
        kl = kl_dim.clamp(min=self.free_bits).sum()
        return recon + beta * kl


def example():
    g = torch.Generator().manual_seed(1)
    return (torch.randint(0, 12, (6, 40), generator=g), torch.tensor(0.3))


OPEN = [{0: "batch"}, {}]

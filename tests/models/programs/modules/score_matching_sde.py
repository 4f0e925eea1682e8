"""Denoising score matching, VP-SDE: continuous t kept away from 0 (sigma > 0), (B,) coefficients reshaped to
(B,1,1), weighting sigma**2 keeps the target finite; half of the conditions are dropped (classifier-free)."""
import torch
from torch import nn

OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}, {0: "batch"}, {0: "batch"}]


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Embedding(11, 6)
        self.net = nn.Sequential(nn.Conv1d(2 + 6 + 1, 16, 3, padding=1), nn.SiLU(), nn.Conv1d(16, 2, 3, padding=1))

    def forward(self, x, cond, keep, u, noise):
        t = 1e-3 + (1 - 1e-3) * u
        log_mean = -0.25 * t ** 2 * 19.9 - 0.05 * t
        mean = log_mean.exp()[:, None, None] * x
        std = torch.sqrt(1 - torch.exp(2 * log_mean))[:, None, None]
        xt = mean + std * noise
        c = self.c(torch.where(keep, cond + 1, torch.zeros_like(cond)))
        inp = torch.cat([xt, c[:, :, None].expand(-1, -1, x.size(2)), t[:, None, None].expand(-1, 1, x.size(2))], 1)
        score = self.net(inp) / std
        return (std ** 2 * (score + noise / std) ** 2).flatten(1).sum(1).mean()


def example():
    torch.manual_seed(79)
    return (torch.randn(4, 2, 10), torch.randint(0, 10, (4,)), torch.tensor([True, False, True, True]),
            torch.rand(4), torch.randn(4, 2, 10))

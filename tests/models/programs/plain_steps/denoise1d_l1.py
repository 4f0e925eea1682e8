import torch
import torch.nn.functional as F
from torch import nn


class Denoiser(nn.Module):
    """1-D conv denoiser for ECG snippets"""

    def __init__(self):
        super().__init__()
        self.enc = nn.Conv1d(1, 8, 5, padding=2)
        self.mid = nn.Conv1d(8, 8, 5, padding=2)
        self.dec = nn.Conv1d(8, 1, 5, padding=2)

    def net(self, x):
        h = F.gelu(self.enc(x))
        h = F.gelu(self.mid(h)) + h
        return self.dec(h)

    def forward(self, noisy, clean):
        out = self.net(noisy.unsqueeze(1))
        return torch.mean(torch.abs(out - clean))  # fault: silent-broadcast-in-loss


def example():
    clean = torch.sin(torch.linspace(0, 12, 64) + 3 * torch.rand(5, 1))
    return (clean + 0.1 * torch.randn(5, 64), clean)


Step = Denoiser
OPEN = [{0: "batch"}, {0: "batch"}]

"""Speech enhancement with a mask in a learned basis, trained on negative SI-SNR.

MISTAKE (silent): the signals are made zero-mean over the batch (dim=0) and not over time; the mean should be over dim=-1.
"""
import torch
import torch.nn as nn

EPS = 1e-8


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Conv1d(1, 24, 16, stride=8, bias=False)
        self.mask = nn.Sequential(nn.Conv1d(24, 24, 1), nn.PReLU(), nn.Conv1d(24, 24, 1), nn.Sigmoid())
        self.decoder = nn.ConvTranspose1d(24, 1, 16, stride=8, bias=False)

    def center(self, s):
        return s - s.mean(dim=0, keepdim=True)  # fault: reduction-over-batch-axis

    def si_snr(self, est, ref):
        est, ref = self.center(est), self.center(ref)
        dot = torch.sum(est * ref, dim=-1, keepdim=True)
        proj = dot * ref / (ref.pow(2).sum(-1, keepdim=True) + EPS)
        noise = est - proj
        ratio = proj.pow(2).sum(-1) / (noise.pow(2).sum(-1) + EPS)
        return 10 * torch.log10(ratio + EPS)

    def forward(self, noisy, clean):
        w = torch.relu(self.encoder(noisy[:, None]))
        est = self.decoder(w * self.mask(w))[:, 0]
        return -self.si_snr(est, clean).mean()  # fault: reduction-over-batch-axis


class Fixed(Step):
    def center(self, s):
        return s - s.mean(dim=-1, keepdim=True)


def example():
    torch.manual_seed(9)
    clean = torch.sin(torch.arange(160) * torch.rand(4, 1)) + 0.3
    return clean + 0.2 * torch.randn(4, 160), clean

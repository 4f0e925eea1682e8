"""Separation of two voices with a mask network, permutation-invariant SI-SNR.

CORRECT: the SI-SNR (higher is better) is negated; the better of the two assignments is taken with torch.max on the
SNR; the mean of each signal is removed over time; the masks are a softmax over the sources (dim=1).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


def si_snr(est, ref, eps=1e-8):
    # est, ref: [..., time]
    est = est - est.mean(dim=-1, keepdim=True)
    ref = ref - ref.mean(dim=-1, keepdim=True)
    dot = (est * ref).sum(dim=-1, keepdim=True)
    target = dot * ref / (ref.pow(2).sum(dim=-1, keepdim=True) + eps)
    noise = est - target
    ratio = target.pow(2).sum(dim=-1) / (noise.pow(2).sum(dim=-1) + eps)
    return 10 * torch.log10(ratio + eps)


class Separator(nn.Module):
    def __init__(self, n_filters=16, kernel=8, n_src=2):
        super().__init__()
        self.n_src = n_src
        self.encoder = nn.Conv1d(1, n_filters, kernel, stride=kernel // 2, bias=False)
        self.tcn = nn.Sequential(
            nn.Conv1d(n_filters, n_filters, 3, padding=1), nn.PReLU(),
            nn.Conv1d(n_filters, n_filters, 3, padding=2, dilation=2), nn.PReLU(),
        )
        self.mask = nn.Conv1d(n_filters, n_src * n_filters, 1)
        self.decoder = nn.ConvTranspose1d(n_filters, 1, kernel, stride=kernel // 2, bias=False)

    def forward(self, mix):
        w = F.relu(self.encoder(mix.unsqueeze(1)))
        b, f, t = w.shape
        m = torch.softmax(self.mask(self.tcn(w)).view(b, self.n_src, f, t), dim=1)
        src = (m * w.unsqueeze(1)).reshape(b * self.n_src, f, t)
        return self.decoder(src).view(b, self.n_src, -1)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Separator()

    def forward(self, mix, voices):
        # mix [B, T], voices [B, 2, T]
        est = self.net(mix)
        straight = si_snr(est, voices).mean(dim=1)
        swapped = si_snr(est, voices.flip(1)).mean(dim=1)
        return -torch.max(straight, swapped).mean()


def example():
    g = torch.Generator().manual_seed(1)
    voices = torch.randn(5, 2, 80, generator=g)
    return voices.sum(dim=1), voices

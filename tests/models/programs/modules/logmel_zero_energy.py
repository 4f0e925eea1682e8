"""Source separation: L1 on log spectra of rectified estimates.

The estimate is relu'd, its energy can be exactly 0 in a band, and log(0) = -inf: loss is inf, the
gradient NaN.  It depends on the input.  Fix: log(clamp(min=eps)).
"""
import torch
from torch import nn

OPEN = [{0: "batch"}, {0: "batch"}]


class Step(nn.Module):
    def __init__(self, bins=16, bands=5):
        super().__init__()
        self.mask = nn.Conv1d(bins, bins, 3, padding=1)
        nn.init.constant_(self.mask.bias, 2.0)
        fb = torch.zeros(bands, bins)
        for b in range(bands):
            fb[b, 3 * b: 3 * b + 4] = 0.25
        self.register_buffer("fb", fb)

    def compress(self, mel):
        return mel.log()  # wrong: log of an energy that can be 0

    def forward(self, mix, clean):
        est = torch.relu(self.mask(mix)) * mix
        mel_e = torch.einsum("mf,bft->bmt", self.fb, est)
        mel_c = torch.einsum("mf,bft->bmt", self.fb, clean).clamp(min=1e-5)
        return (self.compress(mel_e) - mel_c.log()).abs().mean()  # fault: no-rule


class Fixed(Step):
    def compress(self, mel):
        return mel.clamp(min=1e-5).log()


def example():
    torch.manual_seed(37)
    m = torch.rand(2, 16, 6) + 1.0
    return m, m * 0.5

"""Two-speaker separation, SI-SDR with permutation-invariant training: the (est, ref) table is built by broadcasting and the better of both permutations is taken; 10*log10 via log and a constant."""
import math

import torch
from torch import nn

OPEN = [{0: "batch"}, {0: "batch"}]


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Conv1d(1, 12, 8, stride=4, bias=False)
        self.mask = nn.Conv1d(12, 24, 1)
        self.dec = nn.ConvTranspose1d(12, 1, 8, stride=4, bias=False)

    def sisdr(self, e, r):
        e = e - e.mean(-1, keepdim=True)
        r = r - r.mean(-1, keepdim=True)
        a = (e * r).sum(-1, keepdim=True) / (r * r).sum(-1, keepdim=True).clamp(min=1e-8)
        s = a * r
        ratio = (s * s).sum(-1) / ((e - s) ** 2).sum(-1).clamp(min=1e-8)
        return 10.0 / math.log(10.0) * torch.log(ratio + 1e-8)

    def forward(self, mix, ref):
        f = torch.relu(self.enc(mix.unsqueeze(1)))
        m = torch.sigmoid(self.mask(f)).unflatten(1, (2, 12))
        est = torch.stack([self.dec(m[:, i] * f).squeeze(1) for i in range(2)], dim=1)
        tab = self.sisdr(est[:, :, None], ref[:, None, :])
        keep = tab[:, 0, 0] + tab[:, 1, 1]
        swap = tab[:, 0, 1] + tab[:, 1, 0]
        return -0.5 * torch.maximum(keep, swap).mean()


def example():
    torch.manual_seed(69)
    r = torch.randn(3, 2, 64)
    return r.sum(1), r

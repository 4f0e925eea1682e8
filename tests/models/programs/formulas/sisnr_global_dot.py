"""SI-SNR loss for speech separation; the inner product forgets its axis.

sum(est*ref) runs over the whole batch, so each utterance is scaled by a number that mixes all of them, while the
energy is per utterance.  Fix: sum(-1, keepdim=True).
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Conv1d(1, 8, 5, padding=2)
        self.dec = nn.Conv1d(8, 1, 5, padding=2)

    def dot(self, e, r):
        return (e * r).sum()

    def forward(self, mix, ref):
        est = self.dec(torch.relu(self.enc(mix.unsqueeze(1)))).squeeze(1)
        est = est - est.mean(-1, keepdim=True)
        ref = ref - ref.mean(-1, keepdim=True)
        proj = self.dot(est, ref) * ref / (ref.pow(2).sum(-1, keepdim=True) + 1e-6)  # fault: reduction-over-batch-axis
        noise = est - proj
        ratio = proj.pow(2).sum(-1) / (noise.pow(2).sum(-1) + 1e-6)
        return -(10 * torch.log10(ratio + 1e-6)).mean()


class Fixed(Step):
    def dot(self, e, r):
        return (e * r).sum(-1, keepdim=True)


def example():
    torch.manual_seed(29)
    r = torch.randn(3, 40)
    return r + 0.3 * torch.randn(3, 40), r

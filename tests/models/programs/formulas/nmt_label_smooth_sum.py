"""Translation model, label smoothing written by hand.

The smoothed target gives eps/(V-1) to every word and then 1.0 (not 1-eps) to the reference word, so
each row of the target sums to 1+eps.  Fix: scatter 1 - eps.
"""
import torch
import torch.nn.functional as F
from torch import nn

V = 23
EPS = 0.1


def smooth(tgt):
    d = torch.full((tgt.shape[0], V), EPS / (V - 1))
    return d.scatter(1, tgt.unsqueeze(1), 1.0)


def smooth_ok(tgt):
    d = torch.full((tgt.shape[0], V), EPS / (V - 1))
    return d.scatter(1, tgt.unsqueeze(1), 1.0 - EPS)


class Step(nn.Module):
    sm = staticmethod(smooth)

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(V, 12)
        self.lin = nn.Linear(12, V)

    def forward(self, src, tgt):
        h = torch.tanh(self.emb(src)).mean(1)
        logp = F.log_softmax(self.lin(h), dim=-1)
        return -(self.sm(tgt) * logp).sum(-1).mean()  # fault: probability-out-of-range


class Fixed(Step):
    sm = staticmethod(smooth_ok)


def example():
    torch.manual_seed(1)
    return torch.randint(0, V, (6, 5)), torch.randint(0, V, (6,))

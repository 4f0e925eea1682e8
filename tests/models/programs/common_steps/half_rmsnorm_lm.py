"""Half rmsnorm lm.

CORRECT: half-precision body, RMSNorm statistics in float32, left pad causal conv, shifted labels, z-loss.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class RMSNorm(nn.Module):
    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))
        self.eps = eps

    def forward(self, x):
        dtype = x.dtype
        x = x.float()                                      # statistics in float32
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight.to(dtype) * x.to(dtype)


class SwiGLU(nn.Module):
    def __init__(self, d, hidden):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(d, hidden, bias=False), nn.Linear(d, hidden, bias=False), nn.Linear(hidden, d, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Step(nn.Module):
    """Half-precision body with float32 norm statistics, float32 loss and z-loss."""

    def __init__(self, vocab=80, d=32):
        super().__init__()
        self.emb = nn.Embedding(vocab, d).half()
        nn.init.normal_(self.emb.weight, std=0.05)
        self.mix = nn.Conv1d(d, d, 3).half()
        self.n1, self.n2, self.nf = RMSNorm(d), RMSNorm(d), RMSNorm(d)
        self.ff = SwiGLU(d, 64).half()

    def forward(self, ids, labels):
        h = self.emb(ids)
        pad = F.pad(self.n1(h).transpose(1, 2), (2, 0))     # two zeros on the left: causal
        h = h + self.mix(pad).transpose(1, 2)
        h = h + self.ff(self.n2(h))
        logits = (self.nf(h) @ self.emb.weight.t()).float()
        flat, tgt = logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
        lse = torch.logsumexp(flat, dim=-1)
        keep = (tgt != -100).float()
        z_loss = (lse.square() * keep).sum() / keep.sum()
        return F.cross_entropy(flat, tgt, ignore_index=-100) + 1e-4 * z_loss


def example():
    torch.manual_seed(56)
    ids = torch.randint(0, 80, (3, 11))
    labels = ids.clone()
    labels[:, :4] = -100
    return ids, labels

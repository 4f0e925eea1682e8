"""Half rms lm.

MISTAKE (silent): sum of squares over 256 features in float16 overflows to inf.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        ms = x.pow(2).sum(-1, keepdim=True)  # fault: low-precision-accumulation
        x = x * torch.rsqrt(ms / x.shape[-1] + 1e-3)
        return x.float() * self.weight


class Step(nn.Module):
    def __init__(self, vocab=500, dim=256):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.up = nn.Linear(dim, dim)
        self.norm = RMSNorm(dim)
        self.head = nn.Linear(dim, vocab)
        self.scale = dim ** 0.5

    def forward(self, ids, labels):
        h = self.emb(ids) * self.scale
        h = h + F.silu(self.up(h)) * 2.0
        h = self.norm(h.to(torch.float16))
        logits = self.head(h)
        return F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=-100)


def example():
    torch.manual_seed(0)
    labels = torch.randint(0, 500, (4, 24))
    labels[:, :3] = -100
    return torch.randint(0, 500, (4, 24)), labels

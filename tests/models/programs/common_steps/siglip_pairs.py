"""Siglip pairs.

CORRECT: SigLIP sigmoid loss with +1/-1 labels, sum divided by n.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class TextTower(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.proj = nn.Linear(dim, dim)

    def forward(self, tok):
        keep = (tok != 0).unsqueeze(-1).float()
        h = (self.emb(tok) * keep).sum(1) / keep.sum(1).clamp(min=1)
        return self.proj(h)


class Step(nn.Module):
    """Sigmoid loss for image-text pre-training (SigLIP)."""

    def __init__(self, dim=24):
        super().__init__()
        self.image = nn.Sequential(nn.Conv2d(3, 12, 4, 4), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, dim))
        self.text = TextTower(100, dim)
        self.t_prime = nn.Parameter(torch.tensor(10.0).log())
        self.bias = nn.Parameter(torch.tensor(-10.0))

    def forward(self, pixels, tokens):
        zi = F.normalize(self.image(pixels), dim=-1)
        zt = F.normalize(self.text(tokens), dim=-1)
        logits = zi @ zt.T * self.t_prime.exp() + self.bias
        n = logits.size(0)
        labels = 2 * torch.eye(n, device=logits.device) - 1
        return -F.logsigmoid(labels * logits).sum() / n


def example():
    g = torch.Generator().manual_seed(9)
    tokens = torch.randint(1, 100, (5, 9), generator=g)
    tokens[2, 6:] = 0
    return torch.randn(5, 3, 16, 16, generator=g), tokens

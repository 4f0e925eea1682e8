"""Review attention.

MISTAKE (silent): mask is 1 on real tokens, this hides them and keeps the padding.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class SelfAttention(nn.Module):
    def __init__(self, dim=36, heads=4):
        super().__init__()
        self.heads, self.dk = heads, dim // heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, mask):
        B, T, D = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.heads, self.dk).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.dk)
        scores = scores.masked_fill(mask[:, None, None, :] == 1, -1e9)  # fault: inverted-mask
        attn = scores.softmax(dim=-1)  # fault: inverted-mask
        return self.proj((attn @ v).transpose(1, 2).reshape(B, T, D))


class Step(nn.Module):
    def __init__(self, vocab=400, dim=36, n_classes=3):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.attn = SelfAttention(dim)
        self.ln = nn.LayerNorm(dim)
        self.cls = nn.Linear(dim, n_classes)

    def forward(self, input_ids, attention_mask, labels):
        x = self.tok(input_ids)
        x = self.ln(x + self.attn(x, attention_mask))
        m = attention_mask.unsqueeze(-1).float()
        pooled = (x * m).sum(1) / m.sum(1)
        return F.cross_entropy(self.cls(pooled), labels)


def example():
    torch.manual_seed(0)
    ids = torch.randint(1, 400, (6, 15))
    lens = torch.tensor([15, 11, 8, 14, 6, 10])
    mask = (torch.arange(15)[None] < lens[:, None]).long()
    return ids * mask, mask, torch.randint(0, 3, (6,))

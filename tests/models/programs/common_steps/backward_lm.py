"""Backward lm.

CORRECT: backward (right-to-left) LM: tril(-1) hidden, logits[:,1:] against tokens[:,:-1].
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.ff = nn.Sequential(nn.Linear(d, 3 * d), nn.GELU(), nn.Linear(3 * d, d))

    def forward(self, x, hidden):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).reshape(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        w = torch.einsum("bhid,bhjd->bhij", q, k) * q.size(-1) ** -0.5
        w = w.masked_fill(hidden, float("-inf")).softmax(-1)
        y = torch.einsum("bhij,bhjd->bihd", w, v).reshape(b, t, d)
        x = x + self.out(y)
        return x + self.ff(self.ln2(x))


class Step(nn.Module):
    """Right-to-left language model (ELMo's backward half): token t-1 from tokens >= t."""

    def __init__(self, vocab=60, d=24):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.pos = nn.Parameter(torch.randn(1, 32, d) * 0.02)
        self.block = Block(d, 3)
        self.head = nn.Linear(d, vocab)

    def forward(self, tokens):
        t = tokens.size(1)
        x = self.emb(tokens) + self.pos[:, :t]
        left = torch.ones(t, t, dtype=torch.bool, device=tokens.device).tril(-1)  # may not look to the left
        logits = self.head(self.block(x, left))
        return F.cross_entropy(logits[:, 1:].flatten(0, 1), tokens[:, :-1].flatten())


def example():
    g = torch.Generator().manual_seed(23)
    return (torch.randint(0, 60, (4, 12), generator=g),)

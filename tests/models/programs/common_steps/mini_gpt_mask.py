"""minGPT-like char model, homework version.

MISTAKE (silent): causal mask inverted (past masked, future visible).
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class CausalSelfAttention(nn.Module):
    def __init__(self, d, n_head, block):
        super().__init__()
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)
        self.n_head = n_head
        self.register_buffer("tril", torch.tril(torch.ones(block, block)).bool())

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (t.view(B, T, self.n_head, -1).transpose(1, 2) for t in (q, k, v))
        att = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
        att = att.masked_fill(self.tril[:T, :T], -1e9)  # fault: inverted-mask
        y = F.softmax(att, dim=-1) @ v
        return self.proj(y.transpose(1, 2).reshape(B, T, C))


class Step(nn.Module):
    def __init__(self, vocab=50, d=24, block=32):
        super().__init__()
        self.tok = nn.Embedding(vocab, d)
        self.pos = nn.Embedding(block, d)
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = CausalSelfAttention(d, 4, block)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
        self.head = nn.Linear(d, vocab)

    def forward(self, ids):
        inp, target = ids[:, :-1], ids[:, 1:]
        h = self.tok(inp) + self.pos(torch.arange(inp.size(1), device=ids.device))
        h = h + self.attn(self.ln1(h))
        h = h + self.mlp(self.ln2(h))
        logits = self.head(h)
        return F.cross_entropy(logits.reshape(-1, logits.size(-1)), target.reshape(-1))


def example():
    torch.manual_seed(11)
    return (torch.randint(0, 50, (3, 13)),)

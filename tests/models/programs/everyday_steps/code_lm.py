"""Code lm.

MISTAKE (silent): transposed causal mask, each token sees the future; tril meant.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Attn(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, allowed):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        s = torch.matmul(q, k.transpose(2, 3)) / (d // self.heads) ** 0.5
        s = s.masked_fill(allowed == 0, -1e9)  # fault: inverted-mask
        return self.proj(torch.matmul(s.softmax(dim=-1), v).transpose(1, 2).reshape(b, t, d))


class Step(nn.Module):
    def __init__(self, vocab=800, dim=64, depth=2):
        super().__init__()
        self.wte = nn.Embedding(vocab, dim)
        nn.init.normal_(self.wte.weight, std=0.02)
        self.wpe = nn.Embedding(128, dim)
        self.ln = nn.ModuleList([nn.LayerNorm(dim) for _ in range(depth)])
        self.attn = nn.ModuleList([Attn(dim, 4) for _ in range(depth)])
        self.lnf = nn.LayerNorm(dim)

    def forward(self, tokens):
        x_ids, y = tokens[:, :-1], tokens[:, 1:]
        t = x_ids.size(1)
        allowed = torch.triu(torch.ones(t, t, device=tokens.device))  # fault: inverted-mask
        h = self.wte(x_ids) + self.wpe(torch.arange(t, device=tokens.device))
        for ln, attn in zip(self.ln, self.attn):
            h = h + attn(ln(h), allowed)
        logits = self.lnf(h) @ self.wte.weight.t()
        return F.cross_entropy(logits.reshape(-1, logits.size(-1)), y.reshape(-1))


def example():
    torch.manual_seed(0)
    return (torch.randint(0, 800, (6, 41)),)

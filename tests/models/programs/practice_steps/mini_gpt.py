"""A one-block GPT with hand-written multi-head attention.

MISTAKE (silent): the causal mask is the upper triangle, so each position sees itself and the future (where
the answer stands) and not the past; it should be torch.tril.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
from dataclasses import dataclass


@dataclass
class GPTConfig:
    vocab_size: int = 40
    block_size: int = 16
    n_head: int = 2
    n_embd: int = 16


class CausalSelfAttention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.n_head = cfg.n_head
        self.qkv = nn.Linear(cfg.n_embd, 3 * cfg.n_embd)
        self.proj = nn.Linear(cfg.n_embd, cfg.n_embd)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=2)
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (q, k, v))
        att = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        mask = torch.triu(torch.ones(T, T, dtype=torch.bool))
        att = att.masked_fill(~mask, float("-inf"))  # fault: inverted-mask
        y = F.softmax(att, dim=-1) @ v
        return self.proj(y.transpose(1, 2).reshape(B, T, C))


class TrilAttention(CausalSelfAttention):
    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=2)
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (q, k, v))
        att = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        mask = torch.tril(torch.ones(T, T, dtype=torch.bool))
        att = att.masked_fill(~mask, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.proj(y.transpose(1, 2).reshape(B, T, C))


class Step(nn.Module):
    attention = CausalSelfAttention

    def __init__(self):
        super().__init__()
        cfg = GPTConfig()
        self.wte = nn.Embedding(cfg.vocab_size, cfg.n_embd)
        self.wpe = nn.Embedding(cfg.block_size, cfg.n_embd)
        self.ln1, self.ln2 = nn.LayerNorm(cfg.n_embd), nn.LayerNorm(cfg.n_embd)
        self.attn = self.attention(cfg)
        self.mlp = nn.Sequential(nn.Linear(cfg.n_embd, 32), nn.GELU(), nn.Linear(32, cfg.n_embd))
        self.lm_head = nn.Linear(cfg.n_embd, cfg.vocab_size, bias=False)

    def forward(self, ids):
        x, y = ids[:, :-1], ids[:, 1:]
        h = self.wte(x) + self.wpe(torch.arange(x.size(1)))
        h = h + self.attn(self.ln1(h))
        h = h + self.mlp(self.ln2(h))
        logits = self.lm_head(h)
        return F.cross_entropy(logits.reshape(-1, logits.size(-1)), y.reshape(-1))


class Fixed(Step):
    attention = TrilAttention


def example():
    g = torch.Generator().manual_seed(1)
    return (torch.randint(0, 40, (5, 12), generator=g),)

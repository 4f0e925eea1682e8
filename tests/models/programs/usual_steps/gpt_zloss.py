"""Gpt zloss.

CORRECT: shift, the last position has no next token.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class DecoderLM(nn.Module):
    def __init__(self, vocab=180, d=28, heads=4, n_layers=2, max_len=50):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, d), nn.Embedding(max_len, d)
        self.q = nn.ModuleList(nn.Linear(d, d) for _ in range(n_layers))
        self.kv = nn.ModuleList(nn.Linear(d, 2 * d) for _ in range(n_layers))
        self.ff = nn.ModuleList(nn.Sequential(nn.Linear(d, 64), nn.GELU(), nn.Linear(64, d)) for _ in range(n_layers))
        self.head = nn.Linear(d, vocab)

    def forward(self, ids):
        T = ids.shape[1]
        x = self.tok(ids) + self.pos.weight[:T]
        bias = torch.triu(torch.full((T, T), -1e9, device=ids.device), diagonal=1)
        for q, kv, ff in zip(self.q, self.kv, self.ff):
            k, v = kv(x).chunk(2, dim=-1)
            att = q(x) @ k.transpose(1, 2) / x.shape[-1] ** 0.5 + bias
            x = x + att.softmax(-1) @ v
            x = x + ff(x)
        return self.head(x)


class Step(nn.Module):
    def __init__(self, z_coef=1e-4):
        super().__init__()
        self.lm = DecoderLM()
        self.z_coef = z_coef

    def forward(self, ids, attention_mask):
        logits = self.lm(ids)[:, :-1]
        labels = ids.masked_fill(attention_mask == 0, -100)[:, 1:]
        ce = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1), ignore_index=-100)
        z = torch.logsumexp(logits, dim=-1)
        m = attention_mask[:, 1:].float()
        return ce + self.z_coef * (z.pow(2) * m).sum() / m.sum()


def example():
    torch.manual_seed(0)
    lens = torch.tensor([21, 17, 12, 20, 9])
    return torch.randint(0, 180, (5, 21)), (torch.arange(21)[None] < lens[:, None]).long()

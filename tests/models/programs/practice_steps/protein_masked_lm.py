"""Masked language model on amino-acid sequences.

CORRECT: no shift, the labels are the uncorrupted tokens and the input has the mask token at the chosen positions;
all other positions are set to -100 and ignored; the attention mask has no causal part.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, MASK = 0, 23


class Layer(nn.Module):
    def __init__(self, d, heads=2):
        super().__init__()
        self.h = heads
        self.qkv = nn.Linear(d, 3 * d)
        self.o = nn.Linear(d, d)
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.ff = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x, attend):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4).unbind(0)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=attend[:, None, None, :])
        x = x + self.o(a.transpose(1, 2).reshape(b, t, d))
        return x + self.ff(self.n2(x))


class Step(nn.Module):
    def __init__(self, vocab=24, d=16, max_len=32):
        super().__init__()
        self.tok = nn.Embedding(vocab, d)
        self.pos = nn.Embedding(max_len, d)
        nn.init.normal_(self.tok.weight, std=0.1)
        self.layer = Layer(d)
        self.norm = nn.LayerNorm(d)
        self.bias = nn.Parameter(torch.zeros(vocab))

    def forward(self, seq, chosen):
        # seq: residues padded with 0; chosen: bool, the positions to predict
        chosen = chosen & (seq != PAD)
        inputs = seq.masked_fill(chosen, MASK)
        labels = seq.masked_fill(~chosen, -100)
        x = self.tok(inputs) + self.pos(torch.arange(seq.size(1)))
        x = self.norm(self.layer(x, inputs != PAD))
        logits = F.linear(x, self.tok.weight, self.bias)
        return F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=-100)


def example():
    g = torch.Generator().manual_seed(1)
    seq = torch.randint(1, 21, (5, 14), generator=g)
    for i, n in enumerate([14, 9, 12, 6, 11]):
        seq[i, n:] = PAD
    return seq, torch.rand(5, 14, generator=g) < 0.3

"""Seq2seq step with one cross-attention by hand and an additive mask, (1 - mask) * -1e4, in the style of early BERT code.

CORRECT: the integer mask is 1 on real source words, so (1 - mask) * -1e4 leaves those alone; [B, 1, 1, S] broadcasts over heads and target positions.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, vs=50, vt=45, d=16, heads=2):
        super().__init__()
        self.es, self.et = nn.Embedding(vs, d), nn.Embedding(vt, d)
        self.q, self.kv, self.o = nn.Linear(d, d), nn.Linear(d, 2 * d), nn.Linear(d, d)
        self.gru = nn.GRU(d, d, batch_first=True)
        self.out = nn.Linear(2 * d, vt)
        self.h, self.dk = heads, d // heads

    def split(self, x):
        return x.unflatten(-1, (self.h, self.dk)).permute(0, 2, 1, 3)

    def forward(self, src, src_mask, tgt):
        mem = self.es(src)
        dec, _ = self.gru(self.et(tgt[:, :-1]))
        k, v = map(self.split, self.kv(mem).chunk(2, dim=-1))
        bias = (1.0 - src_mask[:, None, None, :].float()) * -10000.0
        a = (self.split(self.q(dec)) @ k.transpose(-1, -2) * self.dk ** -0.5 + bias).softmax(-1)
        ctx = self.o((a @ v).permute(0, 2, 1, 3).flatten(2))
        logits = self.out(torch.cat([dec, ctx], -1))
        return nn.functional.cross_entropy(logits.permute(0, 2, 1), tgt[:, 1:], ignore_index=0)


def example():
    torch.manual_seed(104)
    src = torch.randint(1, 50, (3, 7))
    src[1, 4:] = 0
    tgt = torch.randint(1, 45, (3, 6))
    tgt[2, 4:] = 0
    return src, (src != 0).long(), tgt


OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]

"""Self-attention sentence classifier; padded words must not be attended to.

MISTAKE (silent): valid is unsqueezed at the last axis ([B, T, 1]), so it blanks whole query rows (which then attend uniformly,
padding included) and not the padded keys; it should be valid[:, None, :].
"""
import torch
from torch import nn
from torch.nn import functional as F


class Step(nn.Module):
    def __init__(self, V=80, d=16, C=3):
        super().__init__()
        self.d = d
        self.embed = nn.Embedding(V, d)
        self.wq, self.wk, self.wv = (nn.Linear(d, d, bias=False) for _ in range(3))
        self.cls = nn.Linear(d, C)

    def forward(self, ids, label):
        valid = ids != 0
        x = self.embed(ids)
        q, k, v = self.wq(x), self.wk(x), self.wv(x)
        att = torch.einsum("bqd,bkd->bqk", q, k) * self.d ** -0.5
        att = att.masked_fill(~valid.unsqueeze(-1), -1e9)  # fault: constant-along-softmax
        ctx = torch.einsum("bqk,bkd->bqd", att.softmax(dim=-1), v)
        w = valid.float().unsqueeze(-1)
        pooled = (ctx * w).sum(1) / w.sum(1).clamp_min(1.0)
        return F.cross_entropy(self.cls(pooled), label)


class Fixed(Step):
    def forward(self, ids, label):
        valid = ids != 0
        x = self.embed(ids)
        q, k, v = self.wq(x), self.wk(x), self.wv(x)
        att = torch.einsum("bqd,bkd->bqk", q, k) * self.d ** -0.5
        att = att.masked_fill(~valid.unsqueeze(1), -1e9)
        ctx = torch.einsum("bqk,bkd->bqd", att.softmax(dim=-1), v)
        w = valid.float().unsqueeze(-1)
        pooled = (ctx * w).sum(1) / w.sum(1).clamp_min(1.0)
        return F.cross_entropy(self.cls(pooled), label)


def example():
    g = torch.Generator().manual_seed(4)
    ids = torch.randint(1, 80, (5, 7), generator=g)
    ids[0, 4:] = 0
    ids[3, 2:] = 0
    return ids, torch.randint(0, 3, (5,), generator=g)


OPEN = [{0: "batch"}, {0: "batch"}]

"""Masked-word model with attention whose heads are computed one by one in a Python loop.

CORRECT: each head slices its own columns of q, k and v and scales by the square root of the head size; concatenating on the last axis restores [B, T, D].
Only masked positions have a label, the others are -100.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, vocab=48, d=18, heads=3):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.pos = nn.Embedding(16, d)
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
        self.heads, self.w = heads, d // heads

    def attend(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        outs = []
        for i in range(self.heads):
            c = slice(i * self.w, (i + 1) * self.w)
            s = torch.bmm(q[..., c], k[..., c].transpose(1, 2)) / self.w ** 0.5
            outs.append(torch.bmm(F.softmax(s, dim=2), v[..., c]))
        return self.o(torch.cat(outs, dim=-1))

    def forward(self, ids, labels):
        x = self.emb(ids) + self.pos.weight[: ids.shape[1]]
        x = x + self.attend(x)
        logits = x @ self.emb.weight.T
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)


def example():
    torch.manual_seed(114)
    ids = torch.randint(2, 48, (3, 9))
    labels = torch.full((3, 9), -100)
    labels[:, 2::3] = ids[:, 2::3]
    ids[:, 2::3] = 1
    return ids, labels

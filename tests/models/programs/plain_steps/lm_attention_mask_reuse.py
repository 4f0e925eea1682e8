import math

import torch
import torch.nn.functional as F
from torch import nn


class TinyLM(nn.Module):
    def __init__(self, vocab=50, d=16):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.q, self.k, self.v = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.out = nn.Linear(d, vocab)

    def forward(self, ids, labels, lengths):
        T = ids.shape[1]
        mask = (torch.arange(T) < lengths[:, None])[:, None, :]          # [B, 1, T]
        h = self.emb(ids)
        scores = self.q(h) @ self.k(h).transpose(1, 2) / math.sqrt(h.shape[-1])
        causal = torch.ones(T, T, dtype=torch.bool).tril()
        scores = scores.masked_fill(~(mask & causal), -1e4)
        h = h + scores.softmax(-1) @ self.v(h)
        logits = self.out(h)
        tok = F.cross_entropy(logits.transpose(1, 2), labels, reduction="none")   # [B, T]
        tok = tok * mask.float()  # fault: silent-broadcast-in-loss
        return tok.sum() / mask.sum()


def example():
    return (torch.randint(0, 50, (3, 9)), torch.randint(0, 50, (3, 9)), torch.tensor([9, 4, 6]))


Step = TinyLM

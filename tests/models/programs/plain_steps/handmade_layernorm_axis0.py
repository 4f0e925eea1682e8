import torch
import torch.nn.functional as F
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, features, eps=1e-6):
        super().__init__()
        self.a_2 = nn.Parameter(torch.ones(features))
        self.b_2 = nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(0, keepdim=True)  # fault: reduction-over-batch-axis
        std = x.std(0, keepdim=True)
        return self.a_2 * (x - mean) / (std + self.eps) + self.b_2


class Block(nn.Module):
    def __init__(self, d=12, vocab=40):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.norm = LayerNorm(d)
        self.ff = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
        self.lm_head = nn.Linear(d, vocab)

    def forward(self, ids, labels):
        h = self.emb(ids)
        h = h + self.ff(self.norm(h))
        logits = self.lm_head(h)
        return F.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1))


def example():
    return (torch.randint(0, 40, (4, 7)), torch.randint(0, 40, (4, 7)))


Step = Block

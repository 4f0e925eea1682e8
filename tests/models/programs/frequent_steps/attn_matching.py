"""Question/passages matching with a single cross-attention layer.

MISTAKE (silent): scores are (B, Tq, Tk); softmax has to run over the keys (dim=-1).
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class CrossAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.query = nn.Linear(dim, dim)
        self.key = nn.Linear(dim, dim)
        self.value = nn.Linear(dim, dim)
        self.dim = dim

    def forward(self, question, passage):
        Q, K, V = self.query(question), self.key(passage), self.value(passage)
        scores = torch.bmm(Q, K.transpose(1, 2)) / math.sqrt(self.dim)
        weights = F.softmax(scores, dim=1)  # fault: class-axis-position
        return torch.bmm(weights, V)


class Step(nn.Module):
    def __init__(self, vocab=70, dim=24):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.attn = CrossAttention(dim)
        self.out = nn.Sequential(nn.Linear(2 * dim, dim), nn.ReLU(), nn.Linear(dim, 2))

    def forward(self, question_ids, passage_ids, is_match):
        q = self.embed(question_ids)
        context = self.attn(q, self.embed(passage_ids))
        feats = torch.cat([q, context], dim=-1).mean(dim=1)
        return F.cross_entropy(self.out(feats), is_match)


def example():
    g = torch.Generator().manual_seed(16)
    return (torch.randint(0, 70, (4, 6), generator=g), torch.randint(0, 70, (4, 10), generator=g),
            torch.randint(0, 2, (4,), generator=g))

"""Document classification: BiGRU over words and additive attention pooling.

MISTAKE (silent): the attention scores are [B, T, 1] and the softmax runs over the last axis, which has one
element, so every weight is 1; it should run over the words (dim=1).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class AttentionPool(nn.Module):
    softmax_dim = -1

    def __init__(self, dim, att=16):
        super().__init__()
        self.proj = nn.Linear(dim, att)
        self.context = nn.Linear(att, 1, bias=False)

    def forward(self, h):
        # h: [batch, words, dim]
        u = torch.tanh(self.proj(h))
        weights = F.softmax(self.context(u), dim=self.softmax_dim)  # fault: softmax-over-batch-axis
        return (weights * h).sum(dim=1)


class WordPool(AttentionPool):
    softmax_dim = 1


class DocClassifier(nn.Module):
    def __init__(self, pool, vocab=60, emb=16, hidden=12, n_class=4):
        super().__init__()
        self.embed = nn.Embedding(vocab, emb)
        self.gru = nn.GRU(emb, hidden, batch_first=True, bidirectional=True)
        self.pool = pool(2 * hidden)
        self.fc = nn.Linear(2 * hidden, n_class)

    def forward(self, tokens):
        h, _ = self.gru(self.embed(tokens))
        return self.fc(self.pool(h))


class Step(nn.Module):
    pool = AttentionPool

    def __init__(self):
        super().__init__()
        self.net = DocClassifier(self.pool)
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, tokens, label):
        return self.criterion(self.net(tokens), label)


class Fixed(Step):
    pool = WordPool


def example():
    g = torch.Generator().manual_seed(1)
    return torch.randint(0, 60, (5, 9), generator=g), torch.randint(0, 4, (5,), generator=g)

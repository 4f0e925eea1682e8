"""Query bigru.

CORRECT: time-first input for a time-first GRU.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, vocab=900, dim=40, hidden=32, n_cls=6):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.gru = nn.GRU(dim, hidden, num_layers=2, bidirectional=True)
        self.head = nn.Linear(2 * hidden, n_cls)
        self.register_buffer("prior", torch.tensor([0.4, 0.2, 0.15, 0.1, 0.1, 0.05]))

    def forward(self, tokens, label, sample_w):
        x = self.emb(tokens).transpose(0, 1)
        _, hn = self.gru(x)
        h = torch.cat([hn[-2], hn[-1]], dim=-1)
        logits = self.head(h) + self.prior.log()
        ce = F.cross_entropy(logits, label, reduction="none")
        return (ce * sample_w).sum() / sample_w.sum()


def example():
    torch.manual_seed(0)
    return torch.randint(0, 900, (28, 13)), torch.randint(0, 6, (28,)), torch.rand(28) + 0.1

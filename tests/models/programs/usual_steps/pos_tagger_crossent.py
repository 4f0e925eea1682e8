"""Pos tagger crossent.

CORRECT: class axis moved to dim 1 as cross_entropy expects for [B,C,T].
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

PAD = 0


class ConvTagger(nn.Module):
    def __init__(self, vocab=260, dim=24, n_tags=13):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.convs = nn.ModuleList([nn.Conv1d(dim, dim, 3, padding=1) for _ in range(3)])
        self.out = nn.Linear(dim, n_tags)

    def forward(self, tokens):
        h = self.emb(tokens).transpose(1, 2)
        for c in self.convs:
            h = h + torch.tanh(c(h))
        return self.out(h.transpose(1, 2))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = ConvTagger()

    def forward(self, tokens, tags):
        logits = self.model(tokens)
        mask = (tokens != PAD).float()
        ce = F.cross_entropy(logits.transpose(1, 2), tags, reduction="none")
        per_sentence = (ce * mask).sum(dim=1, keepdim=True) / mask.sum(dim=1, keepdim=True)
        return per_sentence.mean()


def example():
    torch.manual_seed(0)
    lens = torch.tensor([16, 9, 12, 5, 14, 16, 7])
    m = (torch.arange(16)[None] < lens[:, None]).long()
    return torch.randint(1, 260, (7, 16)) * m, torch.randint(0, 13, (7, 16)) * m

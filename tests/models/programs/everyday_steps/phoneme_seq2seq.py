"""Phoneme seq2seq.

MISTAKE (silent): decoder is fed the very tokens it must predict, should be phonemes[:, :-1].
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, vocab=32, dim=48):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)

    def forward(self, x):
        return self.rnn(self.emb(x))[1]


class Step(nn.Module):
    """Grapheme to phoneme. phonemes = [BOS, p1, ..., pn, EOS, PAD...], PAD = 0."""

    def __init__(self, n_phon=45, dim=48):
        super().__init__()
        self.encoder = Encoder(dim=dim)
        self.demb = nn.Embedding(n_phon, dim, padding_idx=0)
        self.decoder = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, n_phon)

    def forward(self, graphemes, phonemes):
        state = self.encoder(graphemes)
        dec_in = phonemes[:, 1:]  # fault: target-in-prediction
        target = phonemes[:, 1:]
        h, _ = self.decoder(self.demb(dec_in), state)
        logits = self.out(h)
        return F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=0)  # fault: target-in-prediction


def example():
    torch.manual_seed(0)
    ph = torch.randint(3, 45, (20, 15))
    ph[:, 0] = 1
    ph[:10, 11] = 2
    ph[:10, 12:] = 0
    return torch.randint(0, 32, (20, 12)), ph

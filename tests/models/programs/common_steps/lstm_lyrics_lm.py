"""Lstm lyrics lm.

MISTAKE (silent): language model loss without the one-token shift (input equals target).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class LyricsLM(nn.Module):
    def __init__(self, vocab, emb=24, hidden=32):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb)
        self.lstm = nn.LSTM(emb, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, vocab)

    def forward(self, tokens):
        out, _ = self.lstm(self.embedding(tokens))
        return self.fc(out)


class Step(nn.Module):
    """Next-word language model over song lyrics."""

    def __init__(self, vocab=90):
        super().__init__()
        self.lm = LyricsLM(vocab)
        self.vocab = vocab

    def forward(self, tokens):
        logits = self.lm(tokens)
        loss = F.cross_entropy(logits.reshape(-1, self.vocab), tokens.reshape(-1))  # fault: target-in-prediction
        return loss, loss.detach().exp()


def example():
    g = torch.Generator().manual_seed(16)
    return (torch.randint(0, 90, (4, 15), generator=g),)

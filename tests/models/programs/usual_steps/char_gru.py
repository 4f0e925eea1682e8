"""Char gru.

MISTAKE (silent): nLLLoss wants log-probabilities, these are plain probabilities.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class CharGRU(nn.Module):
    def __init__(self, n_chars=40, hidden=56):
        super().__init__()
        self.embed = nn.Embedding(n_chars, hidden)
        self.gru = nn.GRU(hidden, hidden, num_layers=2, batch_first=True)
        self.decoder = nn.Linear(hidden, n_chars)

    def forward(self, x):
        h, _ = self.gru(self.embed(x))
        return F.softmax(self.decoder(h), dim=-1)


class Step(nn.Module):
    """Next character model; loader returns (chunk, chunk shifted by one)."""

    def __init__(self):
        super().__init__()
        self.rnn = CharGRU()
        self.criterion = nn.NLLLoss()

    def forward(self, chunk, next_chunk):
        probs = self.rnn(chunk)
        loss = self.criterion(probs.flatten(0, 1), next_chunk.flatten())  # fault: probabilities-into-logit-loss
        return loss


def example():
    torch.manual_seed(0)
    text = torch.randint(0, 40, (7, 26))
    return text[:, :-1].contiguous(), text[:, 1:].contiguous()

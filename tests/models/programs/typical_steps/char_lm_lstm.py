"""Character language model with an LSTM.

MISTAKE (silent): logits are scored against the same character they have read; the target must be the next character.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class CharLM(nn.Module):
    def __init__(self, vocab=40, dim=16, hidden=24):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, chars):
        h, _ = self.lstm(self.embed(chars))
        return self.out(h)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.lm = CharLM()

    def forward(self, chars):
        logits = self.lm(chars)
        vocab = logits.size(-1)
        return F.cross_entropy(logits.reshape(-1, vocab), chars.reshape(-1))  # fault: target-in-prediction


class Fixed(Step):
    def forward(self, chars):
        logits = self.lm(chars[:, :-1])
        vocab = logits.size(-1)
        return F.cross_entropy(logits.reshape(-1, vocab), chars[:, 1:].reshape(-1))


def example():
    g = torch.Generator().manual_seed(1)
    return (torch.randint(0, 40, (6, 14), generator=g),)


OPEN = [{0: "batch"}]

"""Gru sentiment padded.

MISTAKE (silent): last time step of right-padded sequences taken (zeroed padding) instead of lengths-1.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SentimentGRU(nn.Module):
    def __init__(self, vocab=250, emb=16, hid=24):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb, padding_idx=0)
        self.gru = nn.GRU(emb, hid, batch_first=True)
        self.fc = nn.Linear(hid, 2)

    def forward(self, text, lengths):
        steps = torch.arange(text.size(1), device=text.device)
        valid = steps.unsqueeze(0) < lengths.unsqueeze(1)
        x = self.embedding(text)
        out, _ = self.gru(x)
        out = out * valid.unsqueeze(-1)
        return self.fc(out[:, -1])  # fault: last-step-is-padding


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = SentimentGRU()

    def forward(self, text, lengths, label):
        logits = self.model(text, lengths)
        loss = F.cross_entropy(logits, label)
        acc = (logits.argmax(1) == label).float().mean()
        return loss, acc


def example():
    g = torch.Generator().manual_seed(24)
    lengths = torch.tensor([14, 9, 5, 11, 3])
    text = torch.randint(1, 250, (5, 14), generator=g)
    text = text * (torch.arange(14)[None] < lengths[:, None])
    return text, lengths, torch.randint(0, 2, (5,), generator=g)

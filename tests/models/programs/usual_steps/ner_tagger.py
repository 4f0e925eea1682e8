"""Ner tagger.

MISTAKE (silent): reshape scrambles tags and time, should be permute(0, 2, 1).
"""
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, vocab_size=500, emb_dim=28, hidden=32, n_tags=7):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, emb_dim, padding_idx=0)
        self.lstm = nn.LSTM(emb_dim, hidden, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.2)
        self.fc = nn.Linear(2 * hidden, n_tags)

    def forward(self, tokens):
        out, _ = self.lstm(self.embedding(tokens))
        return self.fc(self.dropout(out))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.tagger = Tagger()
        self.loss_fn = nn.CrossEntropyLoss(ignore_index=-100)

    def forward(self, tokens, tags):
        logits = self.tagger(tokens)
        batch, seq_len, n_tags = logits.shape
        logits = logits.reshape(batch, n_tags, seq_len)  # fault: class-axis-position
        return self.loss_fn(logits, tags)


def example():
    torch.manual_seed(0)
    tokens = torch.randint(1, 500, (5, 19))
    tags = torch.randint(0, 7, (5, 19))
    tags[:, 15:] = -100
    return tokens, tags

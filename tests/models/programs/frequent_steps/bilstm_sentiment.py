"""Bilstm sentiment.

MISTAKE (silent): hidden is (2, B, H); view mixes samples, needs transpose(0, 1) or cat of hidden[0], hidden[1].
"""
import torch
import torch.nn as nn


class SentimentRNN(nn.Module):
    def __init__(self, vocab_size, embedding_dim, hidden_dim, n_classes):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embedding_dim, padding_idx=0)
        self.lstm = nn.LSTM(embedding_dim, hidden_dim, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(hidden_dim * 2, n_classes)

    def forward(self, text):
        batch_size = text.size(0)
        embedded = self.embedding(text)
        output, (hidden, cell) = self.lstm(embedded)
        hidden = hidden.view(batch_size, -1)  # fault: class-axis-position
        return self.fc(hidden)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = SentimentRNN(60, 12, 10, 3)
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, text, label):
        logits = self.model(text)
        return self.criterion(logits, label)


def example():
    g = torch.Generator().manual_seed(10)
    return torch.randint(1, 60, (6, 9), generator=g), torch.randint(0, 3, (6,), generator=g)

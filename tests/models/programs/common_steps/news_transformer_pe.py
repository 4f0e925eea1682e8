"""News transformer pe.

MISTAKE (silent): positional encoding sliced by the batch size of a batch-first tensor.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=64):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[:x.size(0)]  # fault: silent-broadcast-in-loss


class NewsClassifier(nn.Module):
    def __init__(self, vocab=200, d=32, classes=4):
        super().__init__()
        self.d = d
        self.emb = nn.Embedding(vocab, d)
        self.pos = PositionalEncoding(d)
        self.layer = nn.TransformerEncoderLayer(d, 4, 64, dropout=0.0, batch_first=True)
        self.out = nn.Linear(d, classes)

    def forward(self, tokens):
        h = self.pos(self.emb(tokens) * math.sqrt(self.d))
        return self.out(self.layer(h).mean(dim=1))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = NewsClassifier()

    def forward(self, tokens, topic):
        return F.cross_entropy(self.model(tokens), topic)


def example():
    torch.manual_seed(25)
    return torch.randint(0, 200, (6, 13)), torch.randint(0, 4, (6,))

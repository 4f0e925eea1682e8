"""News transformer.

MISTAKE (silent): x is batch first (B, T, D), the encoding is indexed by the batch position.
"""
import math
import torch
import torch.nn as nn


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=64):
        super().__init__()
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(0, max_len, dtype=torch.float).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(1))

    def forward(self, x):
        return x + self.pe[:x.size(0), :]  # fault: silent-broadcast-in-loss


class NewsClassifier(nn.Module):
    def __init__(self, vocab_size=80, d_model=32, n_classes=4):
        super().__init__()
        self.emb = nn.Embedding(vocab_size, d_model)
        self.pos_encoder = PositionalEncoding(d_model)
        self.attn = nn.MultiheadAttention(d_model, 4, batch_first=True)
        self.norm = nn.LayerNorm(d_model)
        self.classifier = nn.Linear(d_model, n_classes)

    def forward(self, x):
        x = self.pos_encoder(self.emb(x))
        a, _ = self.attn(x, x, x)
        x = self.norm(x + a)
        return self.classifier(x.mean(dim=1))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = NewsClassifier()
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, token_ids, category):
        return self.criterion(self.model(token_ids), category)


def example():
    g = torch.Generator().manual_seed(18)
    return torch.randint(0, 80, (5, 12), generator=g), torch.randint(0, 4, (5,), generator=g)

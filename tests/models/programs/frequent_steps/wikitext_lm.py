"""Language model in the style of the word_language_model tutorial: data is (seq_len, batch).

CORRECT: unusual, and as it is meant.
"""
import math
import torch
import torch.nn as nn


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.1, max_len=50):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        x = x + self.pe[: x.size(0)]
        return self.dropout(x)


class Step(nn.Module):
    def __init__(self, ntoken=50, d_model=32):
        super().__init__()
        self.d_model = d_model
        self.embedding = nn.Embedding(ntoken, d_model)
        self.pos_encoder = PositionalEncoding(d_model)
        self.layers = nn.ModuleList(
            [nn.TransformerEncoderLayer(d_model, nhead=4, dim_feedforward=64, dropout=0.1) for _ in range(1)])
        self.linear = nn.Linear(d_model, ntoken)
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, source):
        data, targets = source[:-1], source[1:].reshape(-1)
        T = data.size(0)
        mask = torch.triu(torch.full((T, T), float("-inf")), diagonal=1)
        src = self.embedding(data) * math.sqrt(self.d_model)
        output = self.pos_encoder(src)
        for layer in self.layers:
            output = layer(output, src_mask=mask)
        output = self.linear(output)
        return self.criterion(output.view(-1, output.size(-1)), targets)


def example():
    g = torch.Generator().manual_seed(11)
    return (torch.randint(0, 50, (14, 3), generator=g),)

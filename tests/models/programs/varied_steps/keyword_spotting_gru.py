"""Keyword spotting: a conv over the mel spectrogram, then a GRU over time, then 12 keywords.

MISTAKE (silent): the (B, C, T) feature map is put into (B, T, C) with reshape, which mixes channels and frames; it needs transpose(1, 2).
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, n_mels=20, channels=16, keywords=12):
        super().__init__()
        self.conv = nn.Conv1d(n_mels, channels, 5, padding=2)
        self.gru = nn.GRU(channels, 24, batch_first=True)
        self.fc = nn.Linear(24, keywords)
        self.loss = nn.CrossEntropyLoss(label_smoothing=0.1)

    def forward(self, mel, keyword):
        mel = (mel - mel.mean(dim=2, keepdim=True)) / (mel.std(dim=2, keepdim=True) + 1e-5)
        f = torch.relu(self.conv(mel))
        b, c, t = f.shape
        seq = f.reshape(b, t, c)  # fault: class-axis-position
        _, h = self.gru(seq)
        return self.loss(self.fc(h[-1]), keyword)


class Fixed(Step):
    def forward(self, mel, keyword):
        mel = (mel - mel.mean(dim=2, keepdim=True)) / (mel.std(dim=2, keepdim=True) + 1e-5)
        f = torch.relu(self.conv(mel))
        seq = f.transpose(1, 2)
        _, h = self.gru(seq)
        return self.loss(self.fc(h[-1]), keyword)


def example():
    g = torch.Generator().manual_seed(0)
    return torch.randn(4, 20, 30, generator=g), torch.randint(0, 12, (4,), generator=g)

"""Licence plate reader: a convnet gives one feature vector per image column, an LSTM reads them.

MISTAKE (silent): the feature map [B, C, 1, W] is made a sequence [B, W, C] with view, which mixes columns and
channels; it has to be squeeze + permute(0, 2, 1).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class PlateReader(nn.Module):
    def __init__(self, n_char=15, channels=20, hidden=16):
        super().__init__()
        self.cnn = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, channels, 3, padding=1), nn.ReLU(), nn.MaxPool2d((4, 2)),
        )
        self.rnn = nn.LSTM(channels, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, n_char)

    def to_sequence(self, f):
        b, c, h, w = f.size()
        return f.view(b, w, c * h)

    def forward(self, img):
        f = self.cnn(img)
        seq, _ = self.rnn(self.to_sequence(f))  # fault: class-axis-position
        return self.head(seq)


class ColumnReader(PlateReader):
    def to_sequence(self, f):
        return f.squeeze(2).permute(0, 2, 1)


class Step(nn.Module):
    reader = PlateReader

    def __init__(self):
        super().__init__()
        self.reader_net = self.reader()

    def forward(self, img, chars):
        # chars: one character per column, 0 = gap
        logits = self.reader_net(img)
        return F.cross_entropy(logits.flatten(0, 1), chars.flatten())


class Fixed(Step):
    reader = ColumnReader


def example():
    g = torch.Generator().manual_seed(1)
    return torch.rand(5, 1, 8, 28, generator=g), torch.randint(0, 15, (5, 7), generator=g)

"""Image captioning: picture features start a GRU decoder with teacher forcing.

MISTAKE (silent): logits [B, T, V] are brought to [B, V, T] with view, which mixes words and time; transpose(1, 2) is right.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Captioner(nn.Module):
    def __init__(self, feat=32, vocab=60, dim=16, hidden=24):
        super().__init__()
        self.init_h = nn.Linear(feat, hidden)
        self.embed = nn.Embedding(vocab, dim)
        self.gru = nn.GRU(dim, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, feats, words):
        h0 = torch.tanh(self.init_h(feats)).unsqueeze(0)
        y, _ = self.gru(self.embed(words), h0)
        return self.out(y)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = Captioner()
        self.criterion = nn.CrossEntropyLoss(ignore_index=0)

    def forward(self, feats, caption):
        logits = self.model(feats, caption[:, :-1])
        target = caption[:, 1:]
        b, t, v = logits.shape
        loss = self.criterion(logits.contiguous().view(b, v, t), target)  # fault: class-axis-position
        return loss


class Fixed(Step):
    def forward(self, feats, caption):
        logits = self.model(feats, caption[:, :-1])
        target = caption[:, 1:]
        return self.criterion(logits.transpose(1, 2), target)


def example():
    g = torch.Generator().manual_seed(1)
    cap = torch.randint(1, 60, (5, 10), generator=g)
    cap[0, 7:] = 0
    cap[3, 8:] = 0
    return (torch.randn(5, 32, generator=g), cap)


OPEN = [{0: "batch"}, {0: "batch"}]

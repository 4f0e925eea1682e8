"""Support ticket router: attention pooling over padded word vectors.

MISTAKE (silent): padded positions get score 0 before the softmax, so that they keep weight exp(0); -inf is needed.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(100, 20, padding_idx=0)
        self.gru = nn.Conv1d(20, 20, 3, padding=1)
        self.att = nn.Linear(20, 1)
        self.cls = nn.Linear(20, 6)

    def pool(self, h, keep):
        e = self.att(torch.tanh(h)).squeeze(-1)
        e = e * keep  # fault: multiplied-mask
        a = torch.softmax(e, dim=1)  # fault: multiplied-mask
        return torch.bmm(a.unsqueeze(1), h).squeeze(1)

    def forward(self, words, team):
        keep = (words != 0).float()
        h = self.gru(self.emb(words).transpose(1, 2)).transpose(1, 2)
        return F.cross_entropy(self.cls(self.pool(h, keep)), team)  # fault: multiplied-mask


class Fixed(Step):
    def pool(self, h, keep):
        e = self.att(torch.tanh(h)).squeeze(-1)
        e = e.masked_fill(keep == 0, float("-inf"))
        a = torch.softmax(e, dim=1)
        return torch.bmm(a.unsqueeze(1), h).squeeze(1)


def example():
    torch.manual_seed(6)
    w = torch.randint(1, 100, (4, 10))
    w[1, 7:] = 0
    w[3, 4:] = 0
    return w, torch.randint(0, 6, (4,))


OPEN = [{0: "tickets", 1: "words"}, {0: "tickets"}]

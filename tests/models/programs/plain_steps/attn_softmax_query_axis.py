import torch
import torch.nn.functional as F
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.tokeys = nn.Linear(k, k, bias=False)
        self.toqueries = nn.Linear(k, k, bias=False)
        self.tovalues = nn.Linear(k, k, bias=False)

    def forward(self, x):
        q, k, v = self.toqueries(x), self.tokeys(x), self.tovalues(x)
        w = torch.bmm(q, k.transpose(1, 2)) / (x.size(-1) ** 0.5)
        w = F.softmax(w, dim=1)  # fault: class-axis-position
        return torch.bmm(w, v)


class TextClassifier(nn.Module):
    def __init__(self, vocab=60, k=16, classes=4):
        super().__init__()
        self.tok = nn.Embedding(vocab, k)
        self.att = SelfAttention(k)
        self.out = nn.Linear(k, classes)

    def forward(self, tokens, label):
        h = self.tok(tokens)
        h = h + self.att(h)
        return F.cross_entropy(self.out(h.mean(dim=1)), label)


def example():
    return (torch.randint(0, 60, (5, 9)), torch.randint(0, 4, (5,)))


Step = TextClassifier
OPEN = [{0: "batch"}, {0: "batch"}]

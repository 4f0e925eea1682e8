"""Caption smooth.

MISTAKE (silent): uniform part must be the mean over the vocabulary, the sum makes it 600 times too heavy.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Captioner(nn.Module):
    def __init__(self, vocab=600, dim=64):
        super().__init__()
        self.img = nn.Linear(128, dim)
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, feat, words):
        h0 = torch.tanh(self.img(feat)).unsqueeze(0)
        h, _ = self.rnn(self.emb(words), h0)
        return self.out(h)


class Step(nn.Module):
    def __init__(self, eps=0.1, pad=0):
        super().__init__()
        self.model = Captioner()
        self.eps = eps
        self.pad = pad

    def forward(self, feat, caption):
        logits = self.model(feat, caption[:, :-1])
        gold = caption[:, 1:]
        logp = logits.log_softmax(dim=-1)
        nll = -logp.gather(2, gold.unsqueeze(2)).squeeze(2)
        smooth = -logp.sum(dim=-1)  # fault: smoothing-not-averaged
        tok = (1.0 - self.eps) * nll + self.eps * smooth
        keep = (gold != self.pad).float()
        return (tok * keep).sum() / keep.sum()


def example():
    torch.manual_seed(0)
    cap = torch.randint(1, 600, (12, 17))
    cap[:6, 12:] = 0
    return torch.randn(12, 128), cap

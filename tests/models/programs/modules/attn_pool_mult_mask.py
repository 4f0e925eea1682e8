"""Sentence classification with attention pooling over padded tokens.

The padding scores are set to 0 by multiplication and then go through softmax, where exp(0) = 1:
padding keeps weight.  Fix: masked_fill(mask == 0, -inf) before the softmax.
"""
import torch
import torch.nn.functional as F
from torch import nn

OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]


class Step(nn.Module):
    def __init__(self, vocab=50, dim=16, n_cls=3):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.att = nn.Linear(dim, 1)
        self.cls = nn.Linear(dim, n_cls)

    def weights(self, score, mask):
        return F.softmax(score * mask, dim=-1)  # wrong: masked scores are 0, not -inf, before softmax

    def forward(self, tokens, mask, label):
        e = self.emb(tokens)
        a = self.weights(self.att(torch.tanh(e)).squeeze(-1), mask)  # fault: multiplied-mask
        sent = torch.bmm(a[:, None, :], e)[:, 0]
        return F.cross_entropy(self.cls(sent), label)


class Fixed(Step):
    def weights(self, score, mask):
        return F.softmax(score.masked_fill(mask == 0, float("-inf")), dim=-1)


def example():
    torch.manual_seed(20)
    tok = torch.randint(1, 50, (4, 9))
    mask = (torch.arange(9)[None] < torch.tensor([9, 6, 4, 7])[:, None]).float()
    return tok * mask.long(), mask, torch.tensor([0, 2, 1, 1])

"""One beam search step: top-k over the flattened (beam*vocab) scores, quotient and remainder exchanged.

idx // V is the parent beam and idx % V the token; the step returns them the other way round, so the "parents" are
token numbers 0..V-1 that index the K rows of the hidden state: out of range for every token above K-1.  Fix: exchange.
"""
import torch
from torch import nn

EVAL = True


class Step(nn.Module):
    def __init__(self, V=9, d=5, K=3):
        super().__init__()
        self.K, self.V = K, V
        self.emb = nn.Embedding(V, d)
        self.gru = nn.GRUCell(d, d)
        self.out = nn.Linear(d, V)

    def split(self, flat):
        return flat % self.V, flat // self.V  # fault: no-rule

    def forward(self, tok, h, score):
        h = self.gru(self.emb(tok), h)
        lp = torch.log_softmax(self.out(h), -1) + score[:, None]
        best, flat = lp.reshape(-1).topk(self.K)
        parent, token = self.split(flat)
        return best, self.emb(token), h.index_select(0, parent)


class Fixed(Step):
    def split(self, flat):
        return flat // self.V, flat % self.V


def example():
    torch.manual_seed(22)
    return torch.tensor([1, 4, 7]), 3 * torch.randn(3, 5), torch.tensor([0., -1., -1.5])

"""Beam step with batch: flat top-k over K*V, quotient for the parent, remainder for the token, states reordered
with an offset per sentence."""
import torch
from torch import nn

EVAL = True


class Step(nn.Module):
    def __init__(self, V=7, d=4, K=3):
        super().__init__()
        self.V, self.K = V, K
        self.emb = nn.Embedding(V, d)
        self.cell = nn.GRUCell(d, d)
        self.o = nn.Linear(d, V)

    def forward(self, tok, h, score):
        n = tok.shape[0] // self.K
        h = self.cell(self.emb(tok), h)
        lp = torch.log_softmax(self.o(h), -1).view(n, self.K, self.V) + score.view(n, self.K, 1)
        best, flat = lp.view(n, -1).topk(self.K, dim=1)
        parent = torch.div(flat, self.V, rounding_mode="floor")
        token = torch.remainder(flat, self.V)
        rows = (parent + torch.arange(n).unsqueeze(1) * self.K).view(-1)
        return token.view(-1), h.index_select(0, rows), best.view(-1)


def example():
    torch.manual_seed(55)
    return torch.tensor([0, 1, 2, 3, 4, 6]), torch.randn(6, 4), -torch.rand(6)

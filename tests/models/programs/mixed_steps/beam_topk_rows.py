"""One beam-search step with a margin loss on the survivors: flat top-k split into beam and token.

CORRECT: the floor division and the remainder by the vocabulary turn the flat index into (beam, token); integers are right here.
"""
import torch
from torch import nn

EVAL = True


class Step(nn.Module):
    V = 15

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(self.V, 12)
        self.cell = nn.Linear(24, 12)
        self.out = nn.Linear(12, self.V)

    def forward(self, score, state, last, gold):
        b, k = score.shape
        h = torch.tanh(self.cell(torch.cat([state, self.emb(last)], -1)))
        total = score[..., None] + self.out(h).log_softmax(-1)
        best, flat = total.reshape(b, k * self.V).topk(k, dim=1)
        beam, token = flat // self.V, flat % self.V
        kept = h.gather(1, beam[..., None].expand(-1, -1, 12))
        gold_score = total[:, 0].gather(1, gold[:, None])
        miss = torch.relu(1.0 + best[:, -1:] - gold_score).mean()
        return miss, kept, token


def example():
    torch.manual_seed(99)
    return -torch.rand(3, 4), torch.randn(3, 4, 12), torch.randint(0, 15, (3, 4)), torch.randint(0, 15, (3,))

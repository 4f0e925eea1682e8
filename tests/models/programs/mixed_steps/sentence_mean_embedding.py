"""Sentence similarity regression with mean pooling over real tokens.

MISTAKE (silent): the masked sum is divided by the padded length (mean), not by the number of real tokens.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, vocab=80, d=24):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.ff = nn.Sequential(nn.Linear(d, d), nn.Tanh())
        self.score = nn.Linear(2 * d, 1)

    def pool(self, h, mask):
        m = mask.unsqueeze(-1).float()
        return (h * m).mean(dim=1)  # fault: mean-over-padding

    def forward(self, a, a_mask, b, b_mask, gold):
        u = self.pool(self.ff(self.emb(a)), a_mask)  # fault: mean-over-padding
        v = self.pool(self.ff(self.emb(b)), b_mask)  # fault: mean-over-padding
        s = self.score(torch.cat([(u - v).abs(), u * v], -1)).squeeze(-1)
        return nn.functional.mse_loss(5.0 * torch.sigmoid(s), gold)


class Fixed(Step):
    def pool(self, h, mask):
        m = mask.unsqueeze(-1).float()
        return (h * m).sum(dim=1) / m.sum(dim=1).clamp(min=1.0)


def example():
    torch.manual_seed(49)
    length = torch.tensor([3, 8, 5, 2])
    m = torch.arange(8)[None] < length[:, None]
    return torch.randint(0, 80, (4, 8)), m, torch.randint(0, 80, (4, 8)), m.flip(0), torch.rand(4) * 5


OPEN = [{0: "batch"}] * 5

"""Income is put into brackets by four borders and the bracket is predicted from survey answers.

MISTAKE (may): four borders make five brackets (0..4) and the head has only 4 outputs; an income above the last border gives class 4 and fails. The head needs len(borders) + 1 outputs.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    extra = 0

    def __init__(self):
        super().__init__()
        self.register_buffer("borders", torch.tensor([12.0, 25.0, 48.0, 90.0]))
        self.emb = nn.EmbeddingBag(40, 12, mode="mean")
        self.mlp = nn.Sequential(nn.ReLU(), nn.Linear(12, 4 + self.extra))

    def forward(self, answers, income):
        cls = torch.bucketize(income, self.borders)
        logits = self.mlp(self.emb.weight[answers].mean(1))
        return F.cross_entropy(logits, cls)  # fault: class-index-out-of-range


class Fixed(Step):
    extra = 1


def example():
    torch.manual_seed(127)
    return torch.randint(0, 40, (5, 6)), torch.tensor([8.0, 30.0, 14.0, 61.0, 26.0])


OPEN = [{0: "rows"}, {0: "rows"}]

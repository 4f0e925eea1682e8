"""Essay scoring: several trait scores between 0 and 1 from a text embedding.

MISTAKE (silent): the fractional scores are cast with .long() before the loss, which cuts every score below 1
to 0; the cast has to be .float().
"""
import torch
import torch.nn as nn


class TraitScorer(nn.Module):
    def __init__(self, emb=24, hidden=20, traits=4):
        super().__init__()
        self.norm = nn.LayerNorm(emb)
        self.hidden = nn.Linear(emb, hidden)
        self.out = nn.Linear(hidden, traits)

    def forward(self, sent_emb, mask):
        # sent_emb: [essay, sentence, emb], mask 1 = sentence exists
        h = self.norm(sent_emb)
        m = mask.unsqueeze(-1)
        doc = (h * m).sum(1) / m.sum(1).clamp(min=1)
        return torch.sigmoid(self.out(torch.relu(self.hidden(doc))))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.scorer = TraitScorer()
        self.loss = nn.MSELoss()

    def forward(self, sent_emb, mask, scores):
        pred = self.scorer(sent_emb, mask)
        return self.loss(pred, scores.long())  # fault: target-cut-to-integers


class Fixed(Step):
    def forward(self, sent_emb, mask, scores):
        pred = self.scorer(sent_emb, mask)
        return self.loss(pred, scores.float())


def example():
    g = torch.Generator().manual_seed(1)
    mask = torch.ones(5, 7)
    for i, n in enumerate([7, 3, 5, 6, 2]):
        mask[i, n:] = 0
    return torch.randn(5, 7, 24, generator=g), mask, torch.rand(5, 4, generator=g)

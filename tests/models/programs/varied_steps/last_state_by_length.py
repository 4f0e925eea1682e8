"""Review scorer: runs a GRU over right-padded reviews and reads the state at the last real word, found from the mask.

MISTAKE (may): the last word is at length - 1; gathering at length reads the first pad step, and fails for a review that fills the row.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, vocab=150, d=20):
        super().__init__()
        self.emb = nn.Embedding(vocab, d, padding_idx=0)
        self.gru = nn.GRU(d, d, batch_first=True)
        self.reg = nn.Linear(d, 1)

    def last_index(self, ids):
        return (ids != 0).sum(dim=1)  # fault: index-out-of-range

    def forward(self, ids, stars):
        out, _ = self.gru(self.emb(ids))
        idx = self.last_index(ids).view(-1, 1, 1).expand(-1, 1, out.size(2))  # fault: index-out-of-range
        last = out.gather(1, idx).squeeze(1)  # fault: index-out-of-range
        return (self.reg(last).squeeze(1) - stars).abs().mean()


class Fixed(Step):
    def last_index(self, ids):
        return ((ids != 0).sum(dim=1) - 1).clamp(min=0)


def example():
    torch.manual_seed(4)
    ids = torch.randint(1, 150, (5, 10))
    for r, n in enumerate((9, 4, 7, 2, 8)):
        ids[r, n:] = 0
    return ids, torch.randint(1, 6, (5,)).float()


OPEN = [{0: "batch"}, {0: "batch"}]

import torch
import torch.nn.functional as F
from torch import nn

MAX_LEN = 12


class RobertaLike(nn.Module):
    def __init__(self, vocab=50, d=16, pad=1):
        super().__init__()
        self.pad = pad
        self.word = nn.Embedding(vocab, d, padding_idx=pad)
        self.pos = nn.Embedding(MAX_LEN, d, padding_idx=pad)
        self.cls = nn.Linear(d, 3)

    def forward(self, input_ids, labels):
        mask = input_ids.ne(self.pad).long()
        position_ids = torch.cumsum(mask, dim=1) * mask + self.pad
        h = self.word(input_ids) + self.pos(position_ids)  # fault: index-out-of-range
        pooled = (h * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
        return F.cross_entropy(self.cls(pooled), labels)


def example():
    ids = torch.randint(2, 50, (4, MAX_LEN)); ids[:, 8:] = 1
    return (ids, torch.randint(0, 3, (4,)))


Step = RobertaLike

import torch
import torch.nn.functional as F
from torch import nn

BOS, EOS, PAD, UNK = 0, 1, 2, 3
N_SPECIAL = 4


class ByteModel(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.embed = nn.Embedding(256, d)  # fault: index-out-of-range
        self.gru = nn.GRU(d, d, batch_first=True)
        self.lm = nn.Linear(d, 256 + N_SPECIAL)

    def forward(self, raw):
        """raw: uint8 bytes [B, T]"""
        ids = raw.long() + N_SPECIAL
        h, _ = self.gru(self.embed(ids[:, :-1]))  # fault: index-out-of-range
        return F.cross_entropy(self.lm(h).flatten(0, 1), ids[:, 1:].flatten())


def example():
    return (torch.randint(32, 127, (3, 10), dtype=torch.uint8),)


Step = ByteModel

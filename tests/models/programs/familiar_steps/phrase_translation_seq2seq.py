"""Trains a GRU translator with attention by teacher forcing; the source padding is masked in the attention and the target padding in the loss."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    PAD = 0

    def __init__(self, src_vocab=120, tgt_vocab=95, d=26):
        super().__init__()
        self.src = nn.Embedding(src_vocab, d, padding_idx=self.PAD)
        self.tgt = nn.Embedding(tgt_vocab, d, padding_idx=self.PAD)
        self.encoder = nn.GRU(d, d, batch_first=True)
        self.decoder = nn.GRU(d, d, batch_first=True)
        self.bridge = nn.Linear(d, d, bias=False)
        self.out = nn.Linear(2 * d, tgt_vocab)

    def forward(self, source, target):
        memory, state = self.encoder(self.src(source))
        hidden, _ = self.decoder(self.tgt(target[:, :-1]), state)
        align = torch.bmm(hidden, self.bridge(memory).transpose(1, 2))
        align = align.masked_fill((source == self.PAD)[:, None, :], -1e9)
        context = torch.bmm(align.softmax(dim=2), memory)
        logits = self.out(torch.cat([hidden, context], dim=2))
        return F.cross_entropy(logits.permute(0, 2, 1), target[:, 1:], ignore_index=self.PAD)


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    src = torch.randint(1, 120, (5, 11))
    tgt = torch.randint(1, 95, (5, 14))
    src = src.masked_fill(torch.arange(11)[None] >= torch.tensor([11, 6, 8, 9, 4])[:, None], 0)
    tgt = tgt.masked_fill(torch.arange(14)[None] >= torch.tensor([12, 14, 7, 10, 5])[:, None], 0)
    return (src, tgt)

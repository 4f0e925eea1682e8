"""GRU encoder-decoder for translation; id 0 is <pad>.

MISTAKE (silent): the loss counts padded target positions; cross_entropy needs ignore_index=0.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

PAD = 0


class Seq2Seq(nn.Module):
    def __init__(self, src_vocab=45, tgt_vocab=52, dim=16, hidden=24):
        super().__init__()
        self.src_embed = nn.Embedding(src_vocab, dim, padding_idx=PAD)
        self.tgt_embed = nn.Embedding(tgt_vocab, dim, padding_idx=PAD)
        self.encoder = nn.GRU(dim, hidden, batch_first=True)
        self.decoder = nn.GRU(dim, hidden, batch_first=True)
        self.generator = nn.Linear(hidden, tgt_vocab)

    def forward(self, src, tgt_in):
        _, h = self.encoder(self.src_embed(src))
        out, _ = self.decoder(self.tgt_embed(tgt_in), h)
        return self.generator(out)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = Seq2Seq()

    def forward(self, src, tgt):
        logits = self.model(src, tgt[:, :-1])
        gold = tgt[:, 1:].reshape(-1)
        return F.cross_entropy(logits.reshape(-1, logits.size(2)), gold)  # fault: padding-predicted


class Fixed(Step):
    def forward(self, src, tgt):
        logits = self.model(src, tgt[:, :-1])
        gold = tgt[:, 1:].reshape(-1)
        return F.cross_entropy(logits.reshape(-1, logits.size(2)), gold, ignore_index=PAD)


def example():
    g = torch.Generator().manual_seed(1)
    src = torch.randint(1, 45, (6, 9), generator=g)
    tgt = torch.randint(1, 52, (6, 12), generator=g)
    lengths = torch.tensor([12, 5, 9, 7, 11, 6])
    tgt = tgt * (torch.arange(12)[None] < lengths[:, None])
    return (src, tgt)


OPEN = [{0: "batch"}, {0: "batch"}]

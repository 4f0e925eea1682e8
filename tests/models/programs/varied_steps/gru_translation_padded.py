"""GRU encoder-decoder with teacher forcing; token 0 is padding and is to be left out of the loss.

MISTAKE (silent): the weights are 1 where the target IS padding, so only padding is trained; use gold != PAD.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

PAD = 0


class Step(nn.Module):
    def __init__(self, src_v=60, tgt_v=70, d=20):
        super().__init__()
        self.src_emb = nn.Embedding(src_v, d, padding_idx=PAD)
        self.tgt_emb = nn.Embedding(tgt_v, d, padding_idx=PAD)
        self.enc = nn.GRU(d, d, batch_first=True)
        self.dec = nn.GRU(d, d, batch_first=True)
        self.gen = nn.Linear(d, tgt_v)

    def forward(self, src, tgt):
        _, h = self.enc(self.src_emb(src))
        dec_in, gold = tgt[:, :-1], tgt[:, 1:]
        out, _ = self.dec(self.tgt_emb(dec_in), h)
        logits = self.gen(out)
        nll = F.cross_entropy(logits.transpose(1, 2), gold, reduction="none")
        mask = (gold == PAD).float()  # fault: loss-of-one-label
        return (nll * mask).sum() / mask.sum().clamp(min=1)  # fault: loss-of-one-label


class Fixed(Step):
    def forward(self, src, tgt):
        _, h = self.enc(self.src_emb(src))
        dec_in, gold = tgt[:, :-1], tgt[:, 1:]
        out, _ = self.dec(self.tgt_emb(dec_in), h)
        logits = self.gen(out)
        nll = F.cross_entropy(logits.transpose(1, 2), gold, reduction="none")
        mask = (gold != PAD).float()
        return (nll * mask).sum() / mask.sum().clamp(min=1)


def example():
    g = torch.Generator().manual_seed(8)
    src = torch.randint(1, 60, (4, 7), generator=g)
    tgt = torch.randint(1, 70, (4, 9), generator=g)
    tgt[0, 6:] = PAD
    tgt[2, 4:] = PAD
    src[2, 5:] = PAD
    return src, tgt

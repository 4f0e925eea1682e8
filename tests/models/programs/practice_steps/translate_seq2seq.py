"""GRU encoder-decoder for translation with teacher forcing.

MISTAKE (silent): the decoder is fed the very words it has to predict (tgt[:, 1:] both as input and as label);
the input has to be tgt[:, :-1].
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, BOS, EOS = 0, 1, 2


class Encoder(nn.Module):
    def __init__(self, vocab, d):
        super().__init__()
        self.emb = nn.Embedding(vocab, d, padding_idx=PAD)
        self.rnn = nn.GRU(d, d, batch_first=True)

    def forward(self, src):
        _, h = self.rnn(self.emb(src))
        return h


class Decoder(nn.Module):
    def __init__(self, vocab, d):
        super().__init__()
        self.emb = nn.Embedding(vocab, d, padding_idx=PAD)
        self.rnn = nn.GRU(d, d, batch_first=True)
        self.out = nn.Linear(d, vocab)

    def forward(self, words, h):
        o, _ = self.rnn(self.emb(words), h)
        return self.out(o)


class Step(nn.Module):
    def __init__(self, src_vocab=45, tgt_vocab=38, d=18):
        super().__init__()
        self.encoder = Encoder(src_vocab, d)
        self.decoder = Decoder(tgt_vocab, d)

    def forward(self, src, tgt):
        # tgt: BOS w1 w2 ... EOS PAD
        h = self.encoder(src)
        logits = self.decoder(tgt[:, 1:], h)
        gold = tgt[:, 1:]
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), gold.reshape(-1), ignore_index=PAD)  # fault: target-in-prediction


class Fixed(Step):
    def forward(self, src, tgt):
        # tgt: BOS w1 w2 ... EOS PAD
        h = self.encoder(src)
        logits = self.decoder(tgt[:, :-1], h)
        gold = tgt[:, 1:]
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), gold.reshape(-1), ignore_index=PAD)


def example():
    g = torch.Generator().manual_seed(1)
    src = torch.randint(3, 45, (5, 9), generator=g)
    tgt = torch.randint(3, 38, (5, 8), generator=g)
    tgt[:, 0] = BOS
    for i, n in enumerate([8, 6, 5, 7, 4]):
        tgt[i, n - 1] = EOS
        tgt[i, n:] = PAD
    return src, tgt

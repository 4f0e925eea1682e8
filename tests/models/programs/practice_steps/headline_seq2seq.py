"""Headline generation, everything time-major ([time, batch]) with dot attention.

CORRECT: the GRUs are not batch_first because the data are [T, B]; the shift is along axis 0; the decoder starts from the
state at the last real word; the attention softmax
runs over the source positions after padding is masked; the loss ignores padding.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, SOS = 0, 1


class Summarizer(nn.Module):
    def __init__(self, vocab=48, dim=16):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.encoder = nn.GRU(dim, dim)
        self.decoder = nn.GRU(dim, dim)
        self.merge = nn.Linear(2 * dim, dim)
        self.out = nn.Linear(dim, vocab)

    def forward(self, article, prefix):
        memory, _ = self.encoder(self.emb(article))          # [S, B, D]
        last = (article != PAD).sum(dim=0) - 1
        h = memory.gather(0, last.view(1, -1, 1).expand(1, -1, memory.size(2)))
        query, _ = self.decoder(self.emb(prefix), h)         # [T, B, D]
        score = torch.einsum("tbd,sbd->bts", query, memory)
        score = score.masked_fill((article == PAD).t().unsqueeze(1), -1e9)
        attn = F.softmax(score, dim=-1)
        context = torch.einsum("bts,sbd->tbd", attn, memory)
        return self.out(torch.tanh(self.merge(torch.cat([query, context], dim=-1))))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = Summarizer()
        self.loss = nn.CrossEntropyLoss(ignore_index=PAD)

    def forward(self, article, headline):
        # article [S, B], headline [T, B] with SOS first
        logits = self.model(article, headline[:-1])
        gold = headline[1:]
        return self.loss(logits.flatten(0, 1), gold.flatten())


def example():
    g = torch.Generator().manual_seed(1)
    article = torch.randint(2, 48, (13, 5), generator=g)
    headline = torch.randint(2, 48, (7, 5), generator=g)
    headline[0] = SOS
    for i, (s, t) in enumerate([(13, 7), (8, 5), (11, 6), (5, 4), (9, 7)]):
        article[s:, i] = PAD
        headline[t:, i] = PAD
    return article, headline

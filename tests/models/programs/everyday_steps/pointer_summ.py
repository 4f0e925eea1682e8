"""Pointer summ.

CORRECT: softmax then log, a mixture of probabilities has no logits.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    """Pointer-generator: mixes vocabulary and copy distributions."""

    def __init__(self, vocab=400, dim=48):
        super().__init__()
        self.vocab = vocab
        self.emb = nn.Embedding(vocab, dim)
        self.enc = nn.Linear(dim, dim)
        self.dec = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(2 * dim, vocab)
        self.gate = nn.Linear(2 * dim, 1)

    def forward(self, src, summ):
        mem = torch.tanh(self.enc(self.emb(src)))
        h, _ = self.dec(self.emb(summ[:, :-1]))
        gold = summ[:, 1:]
        score = h @ mem.transpose(1, 2) / mem.shape[-1] ** 0.5
        score = score.masked_fill((src == 0).unsqueeze(1), -1e4)
        att = F.softmax(score, dim=-1)
        hc = torch.cat([h, att @ mem], dim=-1)
        p_gen = torch.sigmoid(self.gate(hc))
        p_copy = torch.matmul(att, F.one_hot(src, self.vocab).float())
        p = p_gen * F.softmax(self.out(hc), dim=-1) + (1 - p_gen) * p_copy
        nll = F.nll_loss(torch.log(p + 1e-9).flatten(0, 1), gold.flatten(), ignore_index=0)
        return nll


def example():
    torch.manual_seed(0)
    src = torch.randint(1, 400, (6, 22))
    src[:3, 16:] = 0
    summ = torch.randint(1, 400, (6, 10))
    summ[:2, 8:] = 0
    return src, summ

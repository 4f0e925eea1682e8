"""Image text.

CORRECT: the learned scale is an inverse temperature, so it multiplies.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, d_img=96, vocab=700, dim=40):
        super().__init__()
        self.img = nn.Sequential(nn.Linear(d_img, 64), nn.GELU(), nn.Linear(64, dim))
        self.tok = nn.Embedding(vocab, 64, padding_idx=0)
        self.txt = nn.Linear(64, dim)
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def forward(self, feats, caption):
        keep = (caption > 0).float()
        t = torch.einsum("bt,btd->bd", keep, self.tok(caption)) / keep.sum(1, keepdim=True).clamp_min(1)
        i = self.img(feats)
        i = i / i.norm(dim=-1, keepdim=True)
        t = self.txt(t)
        t = t / t.norm(dim=-1, keepdim=True)
        logits = self.logit_scale.exp().clamp(max=100) * i @ t.t()
        n = torch.arange(feats.shape[0])
        li = -F.log_softmax(logits, dim=1)[n, n].mean()
        lt = -F.log_softmax(logits, dim=0)[n, n].mean()
        return (li + lt) / 2


def example():
    torch.manual_seed(0)
    cap = torch.randint(1, 700, (40, 12))
    cap[::3, 8:] = 0
    return torch.randn(40, 96), cap

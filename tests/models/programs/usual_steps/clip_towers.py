"""Clip towers.

CORRECT: text-to-image direction, softmax over the images of the batch.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class TextTower(nn.Module):
    def __init__(self, vocab=150, width=24, d=16):
        super().__init__()
        self.emb = nn.Embedding(vocab, width)
        self.proj = nn.Linear(width, d)

    def forward(self, ids, mask):
        m = mask.unsqueeze(-1).float()
        return self.proj((self.emb(ids) * m).sum(1) / m.sum(1).clamp(min=1))


class Step(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.image = nn.Sequential(nn.Conv2d(3, 20, 8, stride=8), nn.GELU(), nn.Flatten(2))
        self.img_proj = nn.Linear(20, d)
        self.text = TextTower(d=d)
        self.logit_scale = nn.Parameter(torch.tensor(2.6593))

    def forward(self, pixels, ids, mask):
        img = F.normalize(self.img_proj(self.image(pixels).mean(-1)), dim=-1)
        txt = F.normalize(self.text(ids, mask), dim=-1)
        logits = self.logit_scale.exp() * img @ txt.t()
        target = torch.arange(pixels.shape[0], device=pixels.device)
        loss_i = F.cross_entropy(logits, target)
        loss_t = F.cross_entropy(logits.t(), target)
        return (loss_i + loss_t) / 2


def example():
    torch.manual_seed(0)
    lens = torch.randint(4, 12, (10,))
    return torch.rand(10, 3, 32, 40), torch.randint(0, 150, (10, 12)), (torch.arange(12)[None] < lens[:, None]).long()

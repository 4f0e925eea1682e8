"""Image-caption matching with a dual encoder and a symmetric in-batch loss.

MISTAKE (silent): the embeddings are normalised along the batch (dim=0) instead of along the feature axis, so the
products are no cosine similarities.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class ImageTower(nn.Module):
    def __init__(self, feat=30, dim=12):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(feat, 32), nn.GELU(), nn.Linear(32, dim))

    def forward(self, x):
        return self.net(x)


class TextTower(nn.Module):
    def __init__(self, vocab=50, emb=16, dim=12):
        super().__init__()
        self.bag = nn.Embedding(vocab, emb)
        self.proj = nn.Linear(emb, dim)

    def forward(self, ids):
        return self.proj(self.bag(ids).mean(dim=1))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = ImageTower()
        self.text = TextTower()
        self.logit_scale = nn.Parameter(torch.tensor(2.6593))  # log(1 / 0.07)

    def unit(self, v):
        return F.normalize(v, p=2, dim=0)

    def forward(self, img_feat, caption):
        i = self.unit(self.image(img_feat))  # fault: reduction-over-batch-axis
        t = self.unit(self.text(caption))  # fault: reduction-over-batch-axis
        logits = self.logit_scale.exp() * i @ t.t()
        labels = torch.arange(logits.shape[0])
        return 0.5 * (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels))


class Fixed(Step):
    def unit(self, v):
        return F.normalize(v, p=2, dim=-1)


def example():
    g = torch.Generator().manual_seed(1)
    return torch.randn(6, 30, generator=g), torch.randint(0, 50, (6, 9), generator=g)

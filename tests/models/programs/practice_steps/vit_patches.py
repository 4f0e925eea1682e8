"""A tiny vision transformer with learned position embeddings.

MISTAKE (silent): the positions are counted along the batch axis, each image gets one embedding for all its
patches; they have to run over the patches, arange(x.size(1)).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class PatchEmbed(nn.Module):
    def __init__(self, patch=4, dim=16):
        super().__init__()
        self.proj = nn.Conv2d(3, dim, kernel_size=patch, stride=patch)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class TinyViT(nn.Module):
    def __init__(self, n_class=10, dim=16, n_patch=16):
        super().__init__()
        self.patch = PatchEmbed(dim=dim)
        self.pos = nn.Embedding(n_patch, dim)
        self.block = Block(dim, 2)
        self.head = nn.Linear(dim, n_class)

    def forward(self, img):
        x = self.patch(img)
        x = x + self.pos(torch.arange(x.size(0))).unsqueeze(1)  # fault: silent-broadcast-in-loss
        return self.head(self.block(x).mean(dim=1))


class PatchViT(TinyViT):
    def forward(self, img):
        x = self.patch(img)
        x = x + self.pos(torch.arange(x.size(1))).unsqueeze(0)
        return self.head(self.block(x).mean(dim=1))


class Step(nn.Module):
    arch = TinyViT

    def __init__(self):
        super().__init__()
        self.vit = self.arch()

    def forward(self, img, label):
        return F.cross_entropy(self.vit(img), label)


class Fixed(Step):
    arch = PatchViT


def example():
    g = torch.Generator().manual_seed(1)
    return torch.rand(6, 3, 16, 16, generator=g), torch.randint(0, 10, (6,), generator=g)

"""Vit patchify.

MISTAKE (silent): patchify by plain reshape of BCHW without permute: scrambled patches.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class PatchEmbed(nn.Module):
    def __init__(self, patch=4, chans=3, dim=32):
        super().__init__()
        self.patch = patch
        self.proj = nn.Linear(patch * patch * chans, dim)

    def forward(self, img):
        B, C, H, W = img.shape
        p = self.patch
        n = (H // p) * (W // p)
        patches = img.reshape(B, n, p * p * C)  # fault: class-axis-position
        return self.proj(patches)


class TinyViT(nn.Module):
    def __init__(self, n_patches=16, dim=32, classes=10):
        super().__init__()
        self.embed = PatchEmbed(dim=dim)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos = nn.Parameter(torch.randn(1, n_patches + 1, dim) * 0.02)
        self.block = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.head = nn.Linear(dim, classes)

    def forward(self, img):
        x = self.embed(img)
        x = torch.cat([self.cls.expand(x.size(0), -1, -1), x], dim=1) + self.pos
        return self.head(self.block(x)[:, 0])


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.vit = TinyViT()

    def forward(self, images, labels):
        return F.cross_entropy(self.vit(images), labels)


def example():
    g = torch.Generator().manual_seed(21)
    return torch.randn(5, 3, 16, 16, generator=g), torch.randint(0, 10, (5,), generator=g)

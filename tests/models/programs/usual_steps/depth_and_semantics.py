"""Depth and semantics.

MISTAKE (silent): the + log_vars term is missing, weights run to zero.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SharedEncoder(nn.Module):
    def __init__(self, width=14):
        super().__init__()
        self.c1 = nn.Conv2d(3, width, 3, padding=1)
        self.c2 = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        return F.relu(self.c2(F.relu(self.c1(x))))


class Step(nn.Module):
    """Two tasks weighted by learnt homoscedastic uncertainty (log variances)."""

    def __init__(self, n_classes=8, width=14):
        super().__init__()
        self.encoder = SharedEncoder(width)
        self.depth_head = nn.Conv2d(width, 1, 1)
        self.seg_head = nn.Conv2d(width, n_classes, 1)
        self.log_vars = nn.Parameter(torch.zeros(2))

    def forward(self, image, depth, seg):
        h = self.encoder(image)
        l_depth = F.l1_loss(F.softplus(self.depth_head(h)).squeeze(1), depth)
        l_seg = F.cross_entropy(self.seg_head(h), seg)
        losses = torch.stack([l_depth, l_seg])
        total = (torch.exp(-self.log_vars) * losses).sum()  # fault: one-sided-loss
        return total, l_depth.detach(), l_seg.detach()


def example():
    torch.manual_seed(0)
    return torch.rand(4, 3, 18, 26), torch.rand(4, 18, 26) * 5, torch.randint(0, 8, (4, 18, 26))

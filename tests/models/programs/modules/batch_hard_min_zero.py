"""Batch-hard triplet loss (person re-identification).

For the hardest negative the same-identity entries are multiplied by 0 and a minimum is taken: the
minimum is always that 0 (the anchor itself).  The negative term is a constant.
Fix: add a large value to the excluded entries before min.
"""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    def __init__(self, margin=0.3):
        super().__init__()
        self.backbone = nn.Sequential(nn.Flatten(), nn.Linear(48, 16))
        self.margin = margin

    def hardest_negative(self, d, neg):
        return (d * neg.float()).min(dim=1)[0]  # wrong: excluded entries are 0 and win the minimum

    def forward(self, img, pid):
        e = F.normalize(self.backbone(img), p=2, dim=1)
        d = (2.0 - 2.0 * (e @ e.t())).clamp(min=1e-6).sqrt()
        pos = pid.unsqueeze(0).eq(pid.unsqueeze(1))
        hp = (d * pos.float()).max(dim=1)[0]
        hn = self.hardest_negative(d, ~pos)  # fault: multiplied-mask
        return F.relu(hp - hn + self.margin).mean()


class Fixed(Step):
    def hardest_negative(self, d, neg):
        return (d + (~neg).float() * 1e3).min(dim=1)[0]


def example():
    torch.manual_seed(31)
    return torch.randn(8, 3, 4, 4), torch.tensor([0, 0, 1, 1, 2, 2, 3, 3])

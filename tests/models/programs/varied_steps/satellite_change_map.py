"""Change detection from two 8-bit satellite tiles: their absolute difference goes to a small FCN.

MISTAKE (silent): after and before are uint8, so the difference wraps around (10 - 12 is 254) and abs does nothing; cast to float before subtracting.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.fcn = nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 1, 1))

    def forward(self, before, after, changed):
        d = (after - before).abs().float() / 255.0  # fault: unsigned-difference-wraps
        logit = self.fcn(d).squeeze(1)
        w = 1.0 + 4.0 * changed
        return F.binary_cross_entropy_with_logits(logit, changed, weight=w)


class Fixed(Step):
    def forward(self, before, after, changed):
        d = (after.float() - before.float()).abs() / 255.0
        logit = self.fcn(d).squeeze(1)
        w = 1.0 + 4.0 * changed
        return F.binary_cross_entropy_with_logits(logit, changed, weight=w)


def example():
    g = torch.Generator().manual_seed(31)
    tile = lambda: torch.randint(0, 256, (3, 3, 10, 10), generator=g).to(torch.uint8)
    return tile(), tile(), (torch.rand(3, 10, 10, generator=g) < 0.2).float()


OPEN = [{0: "tiles"}, {0: "tiles"}, {0: "tiles"}]

"""Motion channel for camera traps: difference of two 8-bit frames, wrap-around avoided by int16.

CORRECT: the subtraction is on integers, but on int16, which holds -255..255; the clamp and the cast back to uint8 come after abs.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(2, 8, 3, padding=1)
        self.l = nn.Linear(8, 1)

    def forward(self, prev, cur, animal):
        motion = (cur.to(torch.int16) - prev.to(torch.int16)).abs().clamp(0, 255).to(torch.uint8)
        x = torch.stack((cur, motion), dim=1).float().div(255)
        h = F.relu(self.c(x)).amax(dim=(2, 3))
        return F.binary_cross_entropy_with_logits(self.l(h).squeeze(1), animal.float())


def example():
    g = torch.Generator().manual_seed(6)
    f = lambda: torch.randint(0, 256, (4, 10, 10), generator=g, dtype=torch.uint8)
    return f(), f(), torch.tensor([0, 1, 1, 0])

"""Object counting on a conveyor: difference to a stored empty frame.

CORRECT: uint8 frames are widened to int16 before the subtraction, abs fits, and the threshold compares integers.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("empty", torch.full((1, 1, 24, 24), 90, dtype=torch.uint8))
        self.c = nn.Sequential(nn.Conv2d(2, 8, 5, 2), nn.ReLU(), nn.Conv2d(8, 8, 3, 2), nn.ReLU())
        self.rate = nn.Linear(8, 1)

    def forward(self, frame, count):
        delta = (frame.to(torch.int16) - self.empty.to(torch.int16)).abs()
        fg = delta > 25
        x = torch.cat([delta.float() / 255, fg.float()], dim=1)
        log_rate = self.rate(self.c(x).mean((2, 3))).squeeze(1)
        return (log_rate.exp() - count * log_rate).mean()


def example():
    torch.manual_seed(89)
    return torch.randint(0, 256, (5, 1, 24, 24), dtype=torch.uint8), torch.randint(0, 6, (5,))

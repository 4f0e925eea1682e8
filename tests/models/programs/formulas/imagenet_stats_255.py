"""Image preprocessing: pixels are divided by 255 and then normalised with the statistics of the 0-255 range.

(x/255 - 123.675)/58.395 is about -2.1 everywhere, the picture is almost constant.  Fix: 0.485 / 0.229.
"""
import torch
from torch import nn

EVAL = True


class Step(nn.Module):
    MEAN = (123.675, 116.28, 103.53)
    STD = (58.395, 57.12, 57.375)

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor(self.MEAN).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(self.STD).view(1, 3, 1, 1))
        self.stem = nn.Conv2d(3, 4, 3, 2, 1)
        self.fc = nn.Linear(4, 2)

    def forward(self, img_u8):
        x = img_u8.float() / 255.0
        x = (x - self.mean) / self.std  # fault: bytes-scaled-twice
        return self.fc(self.stem(x).relu().mean((2, 3))).softmax(-1)


class Fixed(Step):
    MEAN = (0.485, 0.456, 0.406)
    STD = (0.229, 0.224, 0.225)


def example():
    torch.manual_seed(31)
    return (torch.randint(0, 256, (2, 3, 8, 8), dtype=torch.uint8),)

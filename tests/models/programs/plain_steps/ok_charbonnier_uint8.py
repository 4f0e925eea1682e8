import torch
from torch import nn


class Charbonnier(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Conv2d(3, 3, 5, padding=2)

    def forward(self, lowres_u8, target_u8):
        x, y = lowres_u8.float() / 255, target_u8.float() / 255
        out = x + self.net(x)
        d = out - y
        dx = d[..., 1:] - d[..., :-1]
        dy = d[:, :, 1:] - d[:, :, :-1]
        c = lambda v: torch.sqrt(v * v + 1e-6).mean()
        return c(d) + 0.1 * (c(dx) + c(dy))


def example():
    u = lambda: torch.randint(0, 256, (2, 3, 9, 9), dtype=torch.uint8)
    return (u(), u())


Step = Charbonnier

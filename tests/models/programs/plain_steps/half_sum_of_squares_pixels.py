import torch
from torch import nn


class EnergyNormalised(nn.Module):
    def __init__(self, n=64):
        super().__init__()
        self.fc = nn.Linear(n, n)

    def forward(self, img):
        x = img.flatten(1)
        h = (x * 255.0).to(torch.float16)
        energy = (h * h).sum(dim=1).float()  # fault: overflow-in-cast
        rec = self.fc(x) * 255.0
        err = (rec - x * 255.0).pow(2).sum(dim=1)
        return (err / energy).mean()


def example():
    return (torch.rand(5, 8, 8),)


Step = EnergyNormalised

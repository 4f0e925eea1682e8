import torch
from torch import nn


class MaxMargin(nn.Module):
    """peak activation of the response map should match the visibility score"""

    def __init__(self):
        super().__init__()
        self.resp = nn.Conv1d(2, 1, 7, padding=3)

    def forward(self, signal, visibility):
        r = self.resp(signal).squeeze(1)
        _, peak = torch.max(r, dim=1)
        return (torch.log1p(peak.abs().float()) - visibility).pow(2).mean()  # fault: loss-detached-from-parameters


def example():
    return (torch.randn(5, 2, 40), torch.rand(5))


Step = MaxMargin

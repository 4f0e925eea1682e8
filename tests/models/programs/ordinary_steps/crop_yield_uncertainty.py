"""Trains yield, moisture and disease heads for field plots, weighted by learned log standard deviations."""
import torch
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(15, 30), nn.Softplus())
        self.regress = nn.Linear(30, 2)
        self.classify = nn.Linear(30, 4)
        self.log_sigma = nn.Parameter(torch.zeros(3))
        self.ce = nn.CrossEntropyLoss()

    def forward(self, plot, yield_moisture, disease):
        h = self.shared(plot)
        mse = (self.regress(h) - yield_moisture).pow(2).mean(dim=0)
        ce = self.ce(self.classify(h), disease)
        s_reg, s_cls = self.log_sigma[:2], self.log_sigma[2]
        reg_term = 0.5 * mse / torch.exp(s_reg).square() + s_reg
        cls_term = ce * torch.exp(-2 * s_cls) + s_cls
        return reg_term.sum() + cls_term


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randn(34, 15), torch.randn(34, 2), torch.randint(0, 4, (34,)))

import torch
import torch.nn.functional as F
from torch import nn


def poisson_nll(inp, target, log_input=True, eps=1e-8):
    if log_input:
        return (torch.exp(inp) - target * inp).mean()
    return (inp - target * torch.log(inp + eps)).mean()


class SpikeModel(nn.Module):
    """GLM-like readout of neural spike counts"""

    def __init__(self, stim=20, neurons=7):
        super().__init__()
        self.core = nn.Linear(stim, 30)
        self.readout = nn.Linear(30, neurons)

    def forward(self, stim, spikes):
        rate = F.softplus(self.readout(F.elu(self.core(stim))))
        return poisson_nll(rate, spikes)  # fault: rate-as-log-rate


def example():
    return (torch.randn(10, 20), torch.poisson(torch.full((10, 7), 2.0)))


Step = SpikeModel

import torch
import torch.nn.functional as F
from torch import nn


class SimCLR(nn.Module):
    def __init__(self, temperature=0.2):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(32, 64), nn.ReLU())
        self.projector = nn.Linear(64, 16)
        self.temperature = temperature

    def embed(self, x):
        z = self.projector(self.encoder(x))
        return F.normalize(z, dim=0)  # fault: reduction-over-batch-axis

    def forward(self, view1, view2):
        za, zb = self.embed(view1), self.embed(view2)  # fault: reduction-over-batch-axis
        logits = za @ zb.t() / self.temperature
        labels = torch.arange(logits.shape[0], device=logits.device)
        return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2


def example():
    return (torch.randn(8, 32), torch.randn(8, 32))


Step = SimCLR
OPEN = [{0: "batch"}, {0: "batch"}]

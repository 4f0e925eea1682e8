import torch
import torch.nn.functional as F
from torch import nn


class EnergyFineTune(nn.Module):
    """Energy-based OOD fine-tuning with margins m_in / m_out."""

    def __init__(self, m_in=-5.0, m_out=-1.0, T=1.0):
        super().__init__()
        self.backbone = nn.Linear(20, 8)
        self.m_in, self.m_out, self.T = m_in, m_out, T

    def energy(self, logits):
        return -self.T * torch.logsumexp(logits / self.T, dim=0)  # fault: reduction-over-batch-axis

    def forward(self, x_in, y, x_out):
        logits_in, logits_out = self.backbone(x_in), self.backbone(x_out)
        e_in, e_out = self.energy(logits_in), self.energy(logits_out)  # fault: reduction-over-batch-axis
        reg = F.relu(e_in - self.m_in).pow(2).mean() + F.relu(self.m_out - e_out).pow(2).mean()
        return F.cross_entropy(logits_in, y) + 0.1 * reg


def example():
    return (torch.randn(9, 20), torch.randint(0, 8, (9,)), torch.randn(9, 20))


Step = EnergyFineTune
OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]

import torch
import torch.nn.functional as F
from torch import nn


class CategoricalVAE(nn.Module):
    def __init__(self, d=30, k=8, tau=0.7):
        super().__init__()
        self.enc = nn.Linear(d, k)
        self.dec = nn.Linear(k, d)
        self.tau = tau

    def sample(self, logits, u):
        gumbel = -torch.log(-torch.log(u))
        return F.softmax((logits + gumbel) / self.tau, dim=0)  # fault: softmax-over-batch-axis

    def forward(self, x, u):
        logits = self.enc(x)
        y = self.sample(logits, u)  # fault: softmax-over-batch-axis
        rec = F.mse_loss(self.dec(y), x)
        logq = F.log_softmax(logits, dim=1)
        kl = (logq.exp() * (logq + torch.log(torch.tensor(8.0)))).sum(1).mean()
        return rec + 0.01 * kl


def example():
    return (torch.randn(11, 30), torch.rand(11, 8).clamp(1e-4, 1 - 1e-4))


Step = CategoricalVAE

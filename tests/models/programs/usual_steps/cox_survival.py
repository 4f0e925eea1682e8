"""Cox survival.

CORRECT: [1,N] risk row against the [N,N] risk-set mask, broadcasting intended.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class RiskNet(nn.Module):
    def __init__(self, n_genes=60, n_clin=7, dim=18):
        super().__init__()
        self.genes = nn.Sequential(nn.Linear(n_genes, dim), nn.ELU(), nn.Dropout(0.2))
        self.clin = nn.Linear(n_clin, dim)
        self.out = nn.Linear(2 * dim, 1)

    def forward(self, genes, clin):
        return self.out(torch.cat([self.genes(genes), F.elu(self.clin(clin))], dim=1))


class Step(nn.Module):
    """Breslow partial likelihood without sorting: explicit risk-set matrix."""

    def __init__(self, l1=1e-4):
        super().__init__()
        self.net = RiskNet()
        self.l1 = l1

    def forward(self, genes, clin, time, event):
        risk = self.net(genes, clin)
        at_risk = time[None, :] >= time[:, None]
        scores = risk.t().masked_fill(~at_risk, float("-inf"))
        log_denom = torch.logsumexp(scores, dim=1)
        pll = (risk.squeeze(1) - log_denom) * event
        penalty = sum(p.abs().sum() for p in self.net.genes.parameters())
        return -pll.sum() / event.sum() + self.l1 * penalty


def example():
    torch.manual_seed(0)
    return torch.randn(24, 60), torch.randn(24, 7), torch.rand(24) * 5, (torch.rand(24) < 0.7).float()

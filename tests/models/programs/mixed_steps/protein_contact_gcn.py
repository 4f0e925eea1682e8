"""Two-layer dense GCN on residue contact maps, per-residue solvent accessibility.

MISTAKE (silent): D^-1/2 is applied to the rows twice; one of the two factors belongs on the columns (d[:, None, :]).
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w2 = nn.Linear(12, 16), nn.Linear(16, 16)
        self.out = nn.Linear(16, 1)

    def normalise(self, a):
        d = a.sum(-1).rsqrt()
        return d.unsqueeze(-1) * a * d.unsqueeze(-1)  # fault: degrees-on-one-side

    def forward(self, residues, contacts, rsa):
        eye = torch.eye(contacts.shape[-1])
        a_hat = self.normalise(torch.maximum(contacts, eye))  # fault: degrees-on-one-side
        h = torch.relu(a_hat @ self.w1(residues))
        h = h + torch.relu(a_hat @ self.w2(h))
        return (self.out(h).squeeze(-1).sigmoid() - rsa).square().mean()


class Fixed(Step):
    def normalise(self, a):
        d = a.sum(-1).rsqrt()
        return d.unsqueeze(-1) * a * d.unsqueeze(-2)


def example():
    torch.manual_seed(37)
    c = (torch.rand(3, 9, 9) < 0.3).float()
    return torch.randn(3, 9, 12), torch.maximum(c, c.transpose(1, 2)), torch.rand(3, 9)

"""Trains a message passing network that predicts the solubility of molecules. The readout gives (B, 1), the target is (B,), so the absolute error broadcasts to (B, B); the target should be unsqueezed (or the prediction squeezed)."""
import torch
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, atom=9, hidden=24):
        super().__init__()
        self.inp = nn.Linear(atom, hidden)
        self.msg1 = nn.Linear(2 * hidden, hidden)
        self.msg2 = nn.Linear(2 * hidden, hidden)
        self.readout = nn.Linear(hidden, 1)

    def forward(self, atoms, bonds, atom_mask, log_sol):
        m = atom_mask.unsqueeze(-1)
        h = torch.relu(self.inp(atoms)) * m
        for layer in (self.msg1, self.msg2):
            gathered = torch.bmm(bonds, h)
            h = torch.relu(layer(torch.cat([h, gathered], dim=-1))) * m
        mol = h.sum(dim=1) / m.sum(dim=1)
        pred = self.readout(mol)  # fault: silent-broadcast-in-loss
        return (log_sol - pred).abs().mean()  # fault: silent-broadcast-in-loss


def example():
    """A tuple of tensors, with realistic dtypes."""
    sizes = torch.randint(4, 15, (12, 1))
    mask = (torch.arange(14)[None, :] < sizes).float()
    b = (torch.rand(12, 14, 14) < 0.2).float()
    b = ((b + b.transpose(1, 2)) > 0).float() * mask[:, :, None] * mask[:, None, :]
    return (torch.randn(12, 14, 9), b, mask, torch.randn(12))

"""NT-Xent loss for two augmented views (SimCLR).

The diagonal should be knocked out of the softmax, but the constant is 1e-9 instead of
1e9: nothing is masked, every row keeps its self similarity 1/tau as the largest logit.
Training goes on, representations are poor.  Fix: subtract 1e9 (or masked_fill with -inf).
"""
import torch
import torch.nn.functional as F
from torch import nn

OPEN = [{0: "batch"}, {0: "batch"}]


class Step(nn.Module):
    def __init__(self, tau=0.2):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 16))
        self.tau = tau

    def mask_self(self, sim):
        eye = torch.eye(sim.shape[0], device=sim.device)
        return sim - eye * 1e-9  # wrong: self similarity not masked (1e-9 for 1e9)

    def forward(self, view1, view2):
        z = F.normalize(self.encoder(torch.cat([view1, view2], dim=0)), dim=1)
        sim = z @ z.t() / self.tau
        sim = self.mask_self(sim)  # fault: mask-hides-nothing
        n = view1.shape[0]
        pos = torch.cat([torch.arange(n) + n, torch.arange(n)])
        return F.cross_entropy(sim, pos)


class Fixed(Step):
    def mask_self(self, sim):
        eye = torch.eye(sim.shape[0], device=sim.device)
        return sim - eye * 1e9


def example():
    torch.manual_seed(0)
    return torch.randn(6, 24), torch.randn(6, 24)

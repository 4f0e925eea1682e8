"""Supervised contrastive loss.  The -inf diagonal is never multiplied: the log-probability of the
diagonal is replaced by zero before it meets the positive mask; anchors without positives are dropped."""
import torch
import torch.nn.functional as F
from torch import nn

OPEN = [{0: "batch"}, {0: "batch"}]


class Step(nn.Module):
    def __init__(self, tau=0.1):
        super().__init__()
        self.proj = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 8))
        self.tau = tau

    def forward(self, x, y):
        z = F.normalize(self.proj(x), dim=-1)
        eye = torch.eye(y.numel()).bool()
        logits = (torch.mm(z, z.T) / self.tau).masked_fill(eye, float("-inf"))
        logp = (logits - logits.logsumexp(1, keepdim=True)).masked_fill(eye, 0.0)
        pos = y.view(-1, 1).eq(y.view(1, -1)) & ~eye
        count = pos.sum(1)
        per_anchor = (logp * pos).sum(1) / count.clamp(min=1)
        has = (count > 0).float()
        return -(per_anchor * has).sum() / has.sum().clamp(min=1.0)


def example():
    torch.manual_seed(60)
    return torch.randn(7, 16), torch.tensor([0, 1, 0, 2, 1, 0, 3])

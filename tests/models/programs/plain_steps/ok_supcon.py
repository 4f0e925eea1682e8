import torch
import torch.nn.functional as F
from torch import nn


class SupCon(nn.Module):
    def __init__(self, t=0.1):
        super().__init__()
        self.proj = nn.Sequential(nn.Linear(30, 24), nn.ReLU(), nn.Linear(24, 8))
        self.t = t

    def forward(self, x, y):
        z = F.normalize(self.proj(x), dim=1)
        n = x.shape[0]
        logits = z @ z.T / self.t
        self_mask = torch.eye(n, dtype=torch.bool)
        logits = logits.masked_fill(self_mask, -1e9)
        log_prob = logits - torch.logsumexp(logits, dim=1, keepdim=True)
        pos = ((y.view(-1, 1) == y.view(1, -1)) & ~self_mask).float()
        return -((pos * log_prob).sum(1) / pos.sum(1).clamp(min=1)).mean()


def example():
    return (torch.randn(12, 30), torch.arange(12) % 4)


Step = SupCon

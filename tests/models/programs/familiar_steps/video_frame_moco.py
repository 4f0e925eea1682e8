"""Trains a video frame encoder with MoCo. The positive logit is put last, but the labels say class 0; it should be concatenated first."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, dim=12, queue=50):
        super().__init__()
        self.f_q = nn.Sequential(nn.Linear(45, 32), nn.ReLU(), nn.Linear(32, dim))
        self.f_k = nn.Sequential(nn.Linear(45, 32), nn.ReLU(), nn.Linear(32, dim))
        self.f_k.load_state_dict(self.f_q.state_dict())
        self.register_buffer("queue", F.normalize(torch.randn(dim, queue), dim=0))

    def forward(self, frame, later_frame):
        q = F.normalize(self.f_q(frame), dim=1)
        with torch.no_grad():
            k = F.normalize(self.f_k(later_frame), dim=1)
        l_pos = torch.einsum("nc,nc->n", q, k).unsqueeze(-1)
        l_neg = torch.einsum("nc,ck->nk", q, self.queue)
        logits = torch.cat([l_neg, l_pos], dim=1) / 0.07  # fault: positive-in-other-column
        labels = torch.zeros(logits.shape[0], dtype=torch.long)
        return F.cross_entropy(logits, labels)  # fault: positive-in-other-column


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(16, 45), torch.randn(16, 45))

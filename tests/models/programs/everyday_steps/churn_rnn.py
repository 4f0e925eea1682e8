"""Churn rnn.

MISTAKE (silent): takes the first padded step, last real step is lengths - 1.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    """Predict churn from the event history; histories are right padded to T with zeros."""

    def __init__(self, n_feat=11, hidden=32):
        super().__init__()
        self.proj = nn.Linear(n_feat, hidden)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)
        self.register_buffer("pos_weight", torch.tensor(6.0))

    def forward(self, events, lengths, churned):
        h = F.relu(self.proj(events))
        out, _ = self.rnn(h)
        rows = torch.arange(events.shape[0], device=events.device)
        last = out[rows, lengths]  # fault: step-after-last
        logit = self.head(last).squeeze(1)
        return F.binary_cross_entropy_with_logits(logit, churned, pos_weight=self.pos_weight)


def example():
    torch.manual_seed(0)
    lengths = torch.randint(4, 28, (24,))
    ev = torch.randn(24, 30, 11) * (torch.arange(30)[None] < lengths[:, None]).unsqueeze(-1)
    return ev, lengths, (torch.rand(24) < 0.15).float()

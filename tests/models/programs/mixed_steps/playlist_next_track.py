"""Next-track retrieval with in-batch negatives and popularity correction.

MISTAKE (silent): the in-batch sampling correction adds log q; it has to be subtracted from the logits.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.tracks = nn.Embedding(200, 16)
        self.ctx = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
        self.register_buffer("tau", torch.tensor(0.1))

    def correct(self, sim, log_q):
        return sim + log_q[None, :]  # fault: density-correction-added

    def forward(self, history, nxt, freq):
        u = F.normalize(self.ctx(self.tracks(history).mean(1)), dim=1)
        v = F.normalize(self.tracks(nxt), dim=1)
        log_q = torch.log(freq.clamp(min=1e-6))
        logits = self.correct(u @ v.t() / self.tau, log_q)  # fault: density-correction-added
        same = nxt[None, :] == nxt[:, None]
        same = same & ~torch.eye(nxt.shape[0], dtype=torch.bool)
        logits = logits.masked_fill(same, -1e4)
        return F.cross_entropy(logits, torch.arange(nxt.shape[0]))


class Fixed(Step):
    def correct(self, sim, log_q):
        return sim - log_q[None, :]


def example():
    torch.manual_seed(47)
    return torch.randint(0, 200, (6, 5)), torch.randint(0, 200, (6,)), torch.rand(6) * 0.05

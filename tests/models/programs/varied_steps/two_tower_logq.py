"""Two-tower retrieval with in-batch negatives and the log-Q correction for popular items.

MISTAKE (silent): the correction is subtracted along the rows (one number per query), which softmax over the items removes again; it belongs to the columns: log_q[None, :].
"""
import torch
import torch.nn.functional as F
from torch import nn


class Tower(nn.Module):
    def __init__(self, n, d=16):
        super().__init__()
        self.table = nn.Embedding(n, d)
        self.proj = nn.Linear(d, d)

    def forward(self, ids):
        return F.normalize(self.proj(F.relu(self.table(ids))), dim=-1)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.query_tower = Tower(200)
        self.item_tower = Tower(500)
        self.log_temp = nn.Parameter(torch.tensor(2.3))

    def correction(self, log_q):
        return log_q.unsqueeze(1)

    def forward(self, user_id, item_id, sampling_prob):
        q, c = self.query_tower(user_id), self.item_tower(item_id)
        scores = torch.einsum("id,jd->ij", q, c) * self.log_temp.exp()
        log_q = sampling_prob.clamp_min(1e-8).log()
        scores = scores - self.correction(log_q)  # fault: constant-along-softmax
        return F.cross_entropy(scores, torch.arange(scores.size(0)))


class Fixed(Step):
    def correction(self, log_q):
        return log_q.unsqueeze(0)


def example():
    torch.manual_seed(21)
    return torch.randint(0, 200, (6,)), torch.randint(0, 500, (6,)), torch.rand(6) * 0.1 + 1e-3

"""Credit model: the age is put in a bucket by comparing it with 5 fixed edges, the bucket is embedded, default is predicted.

MISTAKE (may): 5 edges make 6 buckets (0..5) but the embedding has len(edges) rows, so anybody above the last edge is out of range; len(edges) + 1.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    EXTRA = 0

    def __init__(self):
        super().__init__()
        edges = torch.tensor([25.0, 35.0, 45.0, 55.0, 65.0])
        self.register_buffer("edges", edges)
        self.bucket_emb = nn.Embedding(len(edges) + self.EXTRA, 4)
        self.net = nn.Sequential(nn.Linear(4 + 7, 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, age, numeric, default):
        bucket = (age.unsqueeze(1) >= self.edges).sum(1)
        e = self.bucket_emb(bucket)  # fault: index-out-of-range
        z = self.net(torch.cat([e, numeric], 1)).squeeze(1)
        return F.binary_cross_entropy_with_logits(z, default)


class Fixed(Step):
    EXTRA = 1


def example():
    torch.manual_seed(6)
    return torch.tensor([22., 31., 58., 47., 29., 63.]), torch.randn(6, 7), torch.tensor([0., 0., 1., 0., 1., 0.])


OPEN = [{0: "rows"}, {0: "rows"}, {0: "rows"}]

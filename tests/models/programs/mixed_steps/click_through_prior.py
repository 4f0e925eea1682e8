"""CTR model whose logit is offset by the smoothed click rate of the advertiser.

MISTAKE (silent): the rate is an integer floor division of two counts, 0 for nearly every advertiser.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.user = nn.Embedding(50, 8)
        self.ad = nn.Embedding(30, 8)
        self.mlp = nn.Sequential(nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, 1))
        self.w = nn.Parameter(torch.tensor(2.0))

    def rate(self, clicks, shown):
        return (clicks + 1) // (shown + 20)  # fault: quotient-always-zero

    def forward(self, user, ad, clicks, shown, y):
        u, a = self.user(user), self.ad(ad)
        z = self.mlp(torch.cat((u, a, u * a), 1)).squeeze(1)
        prior = self.rate(clicks, shown)  # fault: quotient-always-zero
        z = z + self.w * prior
        return F.binary_cross_entropy_with_logits(z, y)


class Fixed(Step):
    def rate(self, clicks, shown):
        return (clicks + 1).float() / (shown + 20).float()


def example():
    torch.manual_seed(8)
    shown = torch.randint(50, 900, (8,))
    return torch.randint(0, 50, (8,)), torch.randint(0, 30, (8,)), shown // 7, shown, torch.randint(0, 2, (8,)).float()


OPEN = [{0: "batch"}] * 5

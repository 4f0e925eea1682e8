"""Symmetric image-text contrastive loss on precomputed backbone features.

MISTAKE (silent): the embeddings are unit-normalised along the batch (dim 0), not along the feature axis.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.image_proj = nn.Linear(40, 12, bias=False)
        self.text_proj = nn.Linear(24, 12, bias=False)
        self.log_temp = nn.Parameter(torch.tensor(2.66))

    def unit(self, v):
        return F.normalize(v, dim=0)  # fault: reduction-over-batch-axis

    def forward(self, image_feat, text_feat):
        i = self.unit(self.image_proj(image_feat))  # fault: reduction-over-batch-axis
        t = self.unit(self.text_proj(text_feat))  # fault: reduction-over-batch-axis
        logits = self.log_temp.exp() * i @ t.T
        match = torch.arange(logits.shape[0], device=logits.device)
        return (F.cross_entropy(logits, match) + F.cross_entropy(logits.T, match)) / 2


class Fixed(Step):
    def unit(self, v):
        return F.normalize(v, dim=-1)


def example():
    g = torch.Generator().manual_seed(77)
    return torch.randn(6, 40, generator=g), torch.randn(6, 24, generator=g)


OPEN = [{0: "pairs"}, {0: "pairs"}]

"""Sentence pair entailment with mean-pooled token embeddings and attention masks.

MISTAKE (silent): masked sums are divided by the padded length (mean over T) instead of by the number of real tokens.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class TokenEncoder(nn.Module):
    def __init__(self, vocab=90, dim=24):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        self.conv = nn.Conv1d(dim, dim, 3, padding=1)
        self.norm = nn.LayerNorm(dim)

    def forward(self, ids):
        e = self.embed(ids)
        return self.norm(e + F.gelu(self.conv(e.transpose(1, 2))).transpose(1, 2))


class Step(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.encoder = TokenEncoder(dim=dim)
        self.classifier = nn.Linear(3 * dim, 3)

    def pool(self, ids, mask):
        m = mask.unsqueeze(-1).float()
        return (self.encoder(ids) * m).mean(dim=1)  # fault: mean-over-padding

    def forward(self, ids_a, mask_a, ids_b, mask_b, label):
        u = self.pool(ids_a, mask_a)  # fault: mean-over-padding
        v = self.pool(ids_b, mask_b)  # fault: mean-over-padding
        logits = self.classifier(torch.cat([u, v, (u - v).abs()], dim=-1))
        return F.cross_entropy(logits, label)


class Fixed(Step):
    def pool(self, ids, mask):
        m = mask.unsqueeze(-1).float()
        return (self.encoder(ids) * m).sum(dim=1) / m.sum(dim=1).clamp(min=1.0)


def example():
    g = torch.Generator().manual_seed(1)
    la, lb = torch.tensor([10, 4, 7, 6, 9]), torch.tensor([3, 12, 8, 5, 11])
    mask_a = (torch.arange(10)[None] < la[:, None]).long()
    mask_b = (torch.arange(12)[None] < lb[:, None]).long()
    ids_a = torch.randint(1, 90, (5, 10), generator=g) * mask_a
    ids_b = torch.randint(1, 90, (5, 12), generator=g) * mask_b
    return (ids_a, mask_a, ids_b, mask_b, torch.randint(0, 3, (5,), generator=g))


OPEN = [{0: "batch"}] * 5

"""Chunking model whose tag tensor is set to -1 on padding before the cross-entropy.

MISTAKE (may): cross_entropy ignores -100 by default, not -1, so a batch that has padding gives the class index -1 (out of range);
pass ignore_index=-1.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, vocab=70, n_tags=8):
        super().__init__()
        self.emb = nn.Embedding(vocab, 16, padding_idx=0)
        self.conv = nn.Conv1d(16, 24, 3, padding=1)
        self.fc = nn.Conv1d(24, n_tags, 1)

    def loss(self, scores, tags):
        return F.cross_entropy(scores, tags)  # fault: class-index-out-of-range

    def forward(self, words, tags):
        h = F.relu(self.conv(self.emb(words).transpose(1, 2)))
        scores = self.fc(h)                       # [B, tags, T]
        tags = torch.where(words == 0, torch.full_like(tags, -1), tags)  # fault: class-index-out-of-range
        return self.loss(scores, tags)  # fault: class-index-out-of-range


class Fixed(Step):
    def loss(self, scores, tags):
        return F.cross_entropy(scores, tags, ignore_index=-1)


def example():
    torch.manual_seed(3)
    return torch.randint(1, 70, (4, 9)), torch.randint(0, 8, (4, 9))


OPEN = [{0: "batch"}, {0: "batch"}]

"""Imbalanced text.

CORRECT: weighted mean by hand, both are [N], the same as CrossEntropyLoss(weight=...).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class TextCNN(nn.Module):
    def __init__(self, vocab=350, dim=20, n_classes=9, kernels=(2, 3, 4)):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.convs = nn.ModuleList([nn.Conv1d(dim, 12, k) for k in kernels])
        self.fc = nn.Linear(12 * len(kernels), n_classes)

    def forward(self, tokens):
        e = self.emb(tokens).transpose(1, 2)
        pooled = [F.relu(conv(e)).amax(dim=-1) for conv in self.convs]
        return self.fc(torch.cat(pooled, dim=1))


def effective_number_weights(counts, beta=0.999):
    w = (1.0 - beta) / (1.0 - torch.pow(beta, counts))
    return w / w.sum() * counts.numel()


class Step(nn.Module):
    def __init__(self, n_classes=9):
        super().__init__()
        self.net = TextCNN(n_classes=n_classes)
        counts = torch.tensor([900.0, 400, 250, 120, 80, 60, 30, 15, 5])
        self.register_buffer("class_w", effective_number_weights(counts))

    def forward(self, tokens, labels):
        losses = F.cross_entropy(self.net(tokens), labels, reduction="none")
        w = self.class_w[labels]
        return (losses * w).sum() / w.sum()


def example():
    torch.manual_seed(0)
    return torch.randint(1, 350, (13, 18)), torch.randint(0, 9, (13,))

"""Linear SVM on bag-of-embeddings: does the review recommend the product?.

MISTAKE (silent): hinge loss needs labels in {-1, +1}, y is {0, 1}.
"""
import torch
import torch.nn as nn


class LinearSVM(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.linear = nn.Linear(dim, 1)

    def forward(self, tokens):
        return self.linear(self.emb(tokens).mean(dim=1)).view(-1)


class Step(nn.Module):
    def __init__(self, c=0.01):
        super().__init__()
        self.svm = LinearSVM(90, 16)
        self.c = c

    def forward(self, tokens, stars):
        y = (stars >= 4).float()
        score = self.svm(tokens)
        hinge = torch.clamp(1 - y * score, min=0)  # fault: label-zero-untrained
        loss = hinge.mean() + self.c * (self.svm.linear.weight ** 2).sum()
        acc = ((score > 0).float() == y).float().mean()
        return loss, acc


def example():
    g = torch.Generator().manual_seed(37)
    return torch.randint(0, 90, (10, 8), generator=g), torch.randint(1, 6, (10,), generator=g)

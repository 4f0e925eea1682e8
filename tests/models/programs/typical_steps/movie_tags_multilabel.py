"""Multi-label movie tags from plot embeddings and a genre vector.

MISTAKE (silent): the arguments of binary_cross_entropy are swapped (target first); prediction must come first.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Tagger(nn.Module):
    def __init__(self, plot=30, genres=8, hidden=24, n_tags=11):
        super().__init__()
        self.plot = nn.Linear(plot, hidden)
        self.genre = nn.Linear(genres, hidden)
        self.head = nn.Linear(hidden, n_tags)

    def forward(self, plot, genres):
        return self.head(F.relu(self.plot(plot) + self.genre(genres)))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.tagger = Tagger()
        self.criterion = nn.BCELoss()

    def forward(self, plot, genres, tags):
        probs = torch.sigmoid(self.tagger(plot, genres))
        return self.criterion(tags, probs)  # fault: logarithm-of-labels


class Fixed(Step):
    def forward(self, plot, genres, tags):
        probs = torch.sigmoid(self.tagger(plot, genres))
        return self.criterion(probs, tags)


def example():
    g = torch.Generator().manual_seed(1)
    return (
        torch.randn(6, 30, generator=g),
        (torch.rand(6, 8, generator=g) > 0.7).float(),
        (torch.rand(6, 11, generator=g) > 0.75).float(),
    )


OPEN = [{0: "batch"}] * 3

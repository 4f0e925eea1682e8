"""Face embeddings with the triplet loss.

MISTAKE (silent): positive and negative are swapped in the call, the embedding pulls different persons
together; it should be loss(anchor, positive, negative).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class FaceEmbedder(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 5, stride=2, padding=2), nn.PReLU(),
            nn.Conv2d(8, 12, 3, stride=2, padding=1), nn.PReLU(),
        )
        self.fc = nn.Linear(12 * 5 * 5, dim)

    def forward(self, x):
        return F.normalize(self.fc(self.features(x).flatten(1)), dim=1)


class Step(nn.Module):
    def __init__(self, margin=0.3):
        super().__init__()
        self.embedder = FaceEmbedder()
        self.triplet = nn.TripletMarginLoss(margin=margin, p=2)

    def forward(self, anchor, same_person, other_person):
        a, p, n = (self.embedder(x) for x in (anchor, same_person, other_person))
        return self.triplet(a, n, p)  # fault: positive-and-negative-exchanged


class Fixed(Step):
    def forward(self, anchor, same_person, other_person):
        a, p, n = (self.embedder(x) for x in (anchor, same_person, other_person))
        return self.triplet(a, p, n)


def example():
    g = torch.Generator().manual_seed(1)
    a = torch.rand(6, 1, 20, 20, generator=g)
    return a, a + 0.3 * torch.rand(6, 1, 20, 20, generator=g), torch.rand(6, 1, 20, 20, generator=g)


OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]

"""Product pictures to prototype matching with a cosine classifier.

MISTAKE (silent): the embeddings are L2-normalised over the batch axis (dim=0) instead of the feature axis (dim=1).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Embedder(nn.Module):
    def __init__(self, dim=20):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.fc = nn.Linear(16, dim)

    def forward(self, img):
        h = F.relu(self.conv1(img))
        h = F.relu(self.conv2(h))
        return self.fc(h.mean(dim=(2, 3)))


class Step(nn.Module):
    def __init__(self, n_products=9, dim=20, scale=16.0):
        super().__init__()
        self.embedder = Embedder(dim)
        self.prototypes = nn.Parameter(torch.randn(n_products, dim))
        self.scale = scale

    def forward(self, img, product):
        emb = F.normalize(self.embedder(img), p=2, dim=0)  # fault: reduction-over-batch-axis
        proto = F.normalize(self.prototypes, p=2, dim=1)
        cosine = emb @ proto.t()
        return F.cross_entropy(self.scale * cosine, product)


class Fixed(Step):
    def forward(self, img, product):
        emb = F.normalize(self.embedder(img), p=2, dim=1)
        proto = F.normalize(self.prototypes, p=2, dim=1)
        cosine = emb @ proto.t()
        return F.cross_entropy(self.scale * cosine, product)


def example():
    g = torch.Generator().manual_seed(1)
    return (torch.randn(6, 3, 16, 16, generator=g), torch.randint(0, 9, (6,), generator=g))


OPEN = [{0: "batch"}, {0: "batch"}]

"""Signature verification.

MISTAKE (silent): cosine_embedding_loss given 0/1 targets instead of -1/+1.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SiameseBranch(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 10, 5, stride=2), nn.ReLU(inplace=True),
            nn.Conv2d(10, 20, 3, stride=2), nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d((2, 2)),
        )
        self.fc = nn.Linear(80, dim)

    def forward(self, x):
        return self.fc(torch.flatten(self.features(x), 1))


class Step(nn.Module):
    """Signature verification; a pair is genuine when both images come from the same writer."""

    def __init__(self):
        super().__init__()
        self.branch = SiameseBranch()

    def forward(self, img1, img2, writer1, writer2):
        e1 = self.branch(img1)
        e2 = self.branch(img2)
        same = (writer1 == writer2).float()
        loss = F.cosine_embedding_loss(e1, e2, same, margin=0.3)  # fault: result-always-the-same
        return loss, F.cosine_similarity(e1, e2)


def example():
    g = torch.Generator().manual_seed(49)
    w1 = torch.randint(0, 20, (6,), generator=g)
    w2 = torch.where(torch.arange(6) % 2 == 0, w1, (w1 + 3) % 20)
    return torch.rand(6, 1, 22, 30, generator=g), torch.rand(6, 1, 22, 30, generator=g), w1, w2

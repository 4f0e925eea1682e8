"""Defect detection per image patch with a focal loss.

MISTAKE (silent): the probability of the true class is exp(-bce); the minus is missing, pt is above 1 and the
weight (1 - pt)^gamma grows without bound.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class FocalLoss(nn.Module):
    def __init__(self, alpha=0.25, gamma=2.0):
        super().__init__()
        self.alpha, self.gamma = alpha, gamma

    def forward(self, inputs, targets):
        bce = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
        pt = torch.exp(bce)  # fault: loss-as-probability
        alpha_t = self.alpha * targets + (1 - self.alpha) * (1 - targets)
        return (alpha_t * (1 - pt) ** self.gamma * bce).mean()


class FocalLossNeg(FocalLoss):
    def forward(self, inputs, targets):
        bce = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
        pt = torch.exp(-bce)
        alpha_t = self.alpha * targets + (1 - self.alpha) * (1 - targets)
        return (alpha_t * (1 - pt) ** self.gamma * bce).mean()


class PatchNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.LeakyReLU(0.1),
            nn.Conv2d(8, 12, 3, stride=2, padding=1), nn.LeakyReLU(0.1),
        )
        self.score = nn.Conv2d(12, 1, 1)

    def forward(self, x):
        return self.score(self.backbone(x)).squeeze(1)


class Step(nn.Module):
    criterion = FocalLoss

    def __init__(self):
        super().__init__()
        self.net = PatchNet()
        self.focal = self.criterion()

    def forward(self, image, defect):
        return self.focal(self.net(image), defect)


class Fixed(Step):
    criterion = FocalLossNeg


def example():
    g = torch.Generator().manual_seed(1)
    return torch.rand(5, 1, 24, 24, generator=g), (torch.rand(5, 6, 6, generator=g) > 0.9).float()


OPEN = [{0: "batch"}, {0: "batch"}]

"""Skin lesion segmentation with Tversky and BCE, plus deep supervision.

CORRECT: sigmoid for the Tversky part, raw logits for the BCE part; the mask [B, H, W] gets a channel axis; the coarse
head is compared with the max-pooled mask; each image has its own Tversky index (mean over the batch at the end).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


def tversky_loss(prob, target, alpha=0.3, beta=0.7, eps=1.0):
    axes = (1, 2, 3)
    tp = (prob * target).sum(axes)
    fp = (prob * (1 - target)).sum(axes)
    fn = ((1 - prob) * target).sum(axes)
    return 1 - ((tp + eps) / (tp + alpha * fp + beta * fn + eps)).mean()


class LesionNet(nn.Module):
    def __init__(self, ch=8):
        super().__init__()
        self.enc1 = nn.Sequential(nn.Conv2d(3, ch, 3, padding=1), nn.InstanceNorm2d(ch), nn.ReLU())
        self.enc2 = nn.Sequential(nn.Conv2d(ch, 2 * ch, 3, padding=1), nn.InstanceNorm2d(2 * ch), nn.ReLU())
        self.reduce = nn.Conv2d(2 * ch, ch, 1)
        self.coarse = nn.Conv2d(2 * ch, 1, 1)
        self.fine = nn.Conv2d(ch, 1, 3, padding=1)

    def forward(self, x):
        a = self.enc1(x)
        b = self.enc2(F.max_pool2d(a, 2))
        up = F.interpolate(self.reduce(b), scale_factor=2, mode="nearest")
        return self.fine(a + up), self.coarse(b)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = LesionNet()

    def side_loss(self, logits, target):
        return F.binary_cross_entropy_with_logits(logits, target) + tversky_loss(torch.sigmoid(logits), target)

    def forward(self, image, mask):
        target = mask.unsqueeze(1).float()
        fine, coarse = self.net(image)
        return self.side_loss(fine, target) + 0.4 * self.side_loss(coarse, F.max_pool2d(target, 2))


def example():
    g = torch.Generator().manual_seed(1)
    return torch.rand(5, 3, 16, 20, generator=g), (torch.rand(5, 16, 20, generator=g) > 0.7).long()

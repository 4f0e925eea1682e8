"""Segmentation with a Dice loss.

The prediction is hardened with argmax and one-hot before the overlap: argmax has no
gradient, the network is not trained (backward raises in eager mode: loss has no grad_fn).
Fix: softmax probabilities.
"""
import torch
import torch.nn.functional as F
from torch import nn

OPEN = [{0: "batch"}, {0: "batch"}]


class Step(nn.Module):
    K = 4

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, self.K, 1))

    def soft(self, logits):
        hard = logits.argmax(dim=1)  # wrong: argmax in the loss path, no gradient
        return F.one_hot(hard, self.K).permute(0, 3, 1, 2).float()

    def forward(self, img, seg):
        p = self.soft(self.net(img))  # fault: loss-detached-from-parameters
        t = F.one_hot(seg, self.K).permute(0, 3, 1, 2).float()
        inter = (p * t).sum((2, 3))
        dice = (2 * inter + 1.0) / (p.sum((2, 3)) + t.sum((2, 3)) + 1.0)
        return 1 - dice.mean()


class Fixed(Step):
    def soft(self, logits):
        return logits.softmax(dim=1)


def example():
    torch.manual_seed(24)
    return torch.randn(2, 1, 10, 12), torch.randint(0, 4, (2, 10, 12))

"""Multi-class segmentation of colonoscopy frames with a Dice loss over one-hot masks.

MISTAKE (silent): the Dice loss uses the one-hot of argmax, which has no gradient, so nothing trains; the softmax probabilities belong there.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    K = 3

    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 12, 3, stride=2, padding=1)
        self.mid = nn.Conv2d(12, 12, 3, padding=1)
        self.up = nn.ConvTranspose2d(12, self.K, 2, stride=2)

    def prediction(self, logits):
        hard = logits.argmax(dim=1)  # fault: loss-detached-from-parameters
        return F.one_hot(hard, self.K).permute(0, 3, 1, 2).float()  # fault: loss-detached-from-parameters

    def forward(self, frame, mask):
        logits = self.up(F.relu(self.mid(F.relu(self.down(frame)))))
        p = self.prediction(logits)  # fault: loss-detached-from-parameters
        t = F.one_hot(mask, self.K).permute(0, 3, 1, 2).float()
        inter = (p * t).sum((0, 2, 3))
        union = p.sum((0, 2, 3)) + t.sum((0, 2, 3))
        dice = (2 * inter + 1) / (union + 1)
        return 1 - dice.mean()


class Fixed(Step):
    def prediction(self, logits):
        return logits.softmax(dim=1)


def example():
    torch.manual_seed(89)
    return torch.randn(3, 3, 12, 12), torch.randint(0, 3, (3, 12, 12))

"""Region classifier of a weed detector: proposals with label -1 are background.

MISTAKE (fails): background is given class index 4 but the head has 4 outputs (0..3); it needs one more.
"""
import torch
from torch import nn
import torch.nn.functional as F

CLASSES = 4


class Step(nn.Module):
    outputs = CLASSES

    def __init__(self):
        super().__init__()
        self.fc = nn.Sequential(nn.Flatten(2), nn.Linear(4 * 9, 24), nn.ReLU())
        self.cls = nn.Linear(24, self.outputs)
        self.box = nn.Linear(24, 4)

    def forward(self, rois, label, delta):
        h = self.fc(rois)
        target = torch.where(label < 0, torch.full_like(label, CLASSES), label)  # fault: class-index-out-of-range
        logits = self.cls(h)
        cls = F.cross_entropy(logits.flatten(0, 1), target.flatten())  # fault: class-index-out-of-range
        fg = (label >= 0).float()
        box = ((self.box(h) - delta).abs().sum(-1) * fg).sum() / fg.sum().clamp(min=1)
        return cls + box


class Fixed(Step):
    outputs = CLASSES + 1


FAILS = True


def example():
    torch.manual_seed(67)
    return torch.randn(3, 6, 4, 3, 3), torch.randint(-1, 4, (3, 6)), torch.randn(3, 6, 4)

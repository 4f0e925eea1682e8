"""Transfer imagenet norm.

MISTAKE (silent): ImageNet mean/std applied to 0..255 pixels (missing /255).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


class Preprocess(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor(IMAGENET_MEAN).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(IMAGENET_STD).view(1, 3, 1, 1))

    def forward(self, img_u8):
        x = img_u8.permute(0, 3, 1, 2).float()
        return (x - self.mean) / self.std  # fault: bytes-not-scaled


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU())
        self.res = nn.Sequential(nn.Conv2d(16, 16, 3, 1, 1), nn.BatchNorm2d(16))

    def forward(self, x):
        x = self.stem(x)
        return F.relu(x + self.res(x)).mean(dim=(2, 3))


class Step(nn.Module):
    def __init__(self, classes=12):
        super().__init__()
        self.pre = Preprocess()
        self.backbone = Backbone()
        self.fc = nn.Linear(16, classes)

    def forward(self, img_u8, label):
        feat = self.backbone(self.pre(img_u8))
        return F.cross_entropy(self.fc(feat), label)


def example():
    g = torch.Generator().manual_seed(42)
    return (torch.randint(0, 256, (5, 16, 16, 3), generator=g, dtype=torch.uint8),
            torch.randint(0, 12, (5,), generator=g))

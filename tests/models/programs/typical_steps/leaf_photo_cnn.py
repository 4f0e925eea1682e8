"""Leaf disease classifier; photos arrive as H x W x C arrays (PIL / OpenCV).

MISTAKE (silent): the [B, H, W, 3] batch is reshaped to [B, 3, H, W] instead of permuted.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class LeafCNN(nn.Module):
    def __init__(self, n_classes=4):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
        )
        self.fc = nn.Linear(16, n_classes)

    def forward(self, x):
        return self.fc(self.features(x).flatten(1))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.cnn = LeafCNN()

    def forward(self, photos, disease):
        x = photos.float() / 255.0
        x = x.reshape(-1, 3, x.size(1), x.size(2))  # fault: class-axis-position
        return F.cross_entropy(self.cnn(x), disease, label_smoothing=0.1)


class Fixed(Step):
    def forward(self, photos, disease):
        x = photos.float() / 255.0
        x = x.permute(0, 3, 1, 2)
        return F.cross_entropy(self.cnn(x), disease, label_smoothing=0.1)


def example():
    g = torch.Generator().manual_seed(1)
    photos = torch.randint(0, 256, (6, 16, 20, 3), generator=g).to(torch.uint8)
    return (photos, torch.randint(0, 4, (6,), generator=g))


OPEN = [{0: "batch"}, {0: "batch"}]

"""Fine-tuning an ImageNet backbone; the GPU does the pre-processing.

MISTAKE (silent): images are 0..255 but the ImageNet statistics are for 0..1, division by 255 missing.
"""
import torch
import torch.nn as nn


class Preprocess(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1))

    def forward(self, images):
        x = images.permute(0, 3, 1, 2).float()
        return (x - self.mean) / self.std  # fault: bytes-not-scaled


class Step(nn.Module):
    def __init__(self, n_classes=12):
        super().__init__()
        self.preprocess = Preprocess()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 12, 3, stride=2), nn.ReLU(),
            nn.Conv2d(12, 24, 3, stride=2), nn.ReLU(),
        )
        for p in self.backbone.parameters():
            p.requires_grad = False
        self.head = nn.Linear(24, n_classes)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, images_uint8, labels):
        feats = self.backbone(self.preprocess(images_uint8))
        logits = self.head(feats.amax(dim=(2, 3)))
        return self.loss(logits, labels)


def example():
    g = torch.Generator().manual_seed(32)
    img = torch.randint(0, 256, (4, 16, 16, 3), generator=g, dtype=torch.uint8)
    return img, torch.randint(0, 12, (4,), generator=g)

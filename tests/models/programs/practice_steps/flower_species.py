"""Fine-tuning a small residual net on flower photos, batch normalised on the device.

MISTAKE (silent): the images are uint8 0..255 and the ImageNet mean/std are for 0..1; the division by 255 is
missing.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class BasicBlock(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.conv1 = nn.Conv2d(ch, ch, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(ch)
        self.conv2 = nn.Conv2d(ch, ch, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(ch)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(x + self.bn2(self.conv2(y)))


class FlowerNet(nn.Module):
    def __init__(self, n_class=11, ch=10):
        super().__init__()
        self.stem = nn.Conv2d(3, ch, 3, stride=2, padding=1)
        self.block = BasicBlock(ch)
        self.fc = nn.Linear(ch, n_class)

    def forward(self, x):
        return self.fc(self.block(self.stem(x)).mean(dim=(2, 3)))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1))
        self.net = FlowerNet()

    def normalize(self, images):
        return (images.float() - self.mean) / self.std

    def forward(self, images, species):
        return F.cross_entropy(self.net(self.normalize(images)), species)  # fault: bytes-not-scaled


class Fixed(Step):
    def normalize(self, images):
        return (images.float() / 255.0 - self.mean) / self.std


def example():
    g = torch.Generator().manual_seed(1)
    images = torch.randint(0, 256, (6, 3, 16, 16), generator=g).to(torch.uint8)
    return images, torch.randint(0, 11, (6,), generator=g)


OPEN = [{0: "batch"}, {0: "batch"}]

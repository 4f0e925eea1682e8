"""Fast style transfer.

MISTAKE (silent): gram matrix over batch*channels mixes images of the batch.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class FeatureNet(nn.Module):
    """Stand-in for the first VGG blocks, frozen."""

    def __init__(self):
        super().__init__()
        self.relu1 = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())
        self.relu2 = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(8, 12, 3, padding=1), nn.ReLU())

    def forward(self, x):
        f1 = self.relu1(x)
        return [f1, self.relu2(f1)]


def gram_matrix(y):
    b, c, h, w = y.size()
    features = y.view(b * c, h * w)  # fault: gram-of-whole-batch
    gram = torch.mm(features, features.t())
    return gram / (b * c * h * w)


class Step(nn.Module):
    def __init__(self, content_weight=1.0, style_weight=1e3):
        super().__init__()
        self.transformer = nn.Sequential(
            nn.Conv2d(3, 16, 9, padding=4), nn.InstanceNorm2d(16, affine=True), nn.ReLU(),
            nn.Conv2d(16, 3, 9, padding=4),
        )
        self.vgg = FeatureNet().requires_grad_(False)
        self.cw, self.sw = content_weight, style_weight

    def forward(self, content_batch, style_batch):
        out = self.transformer(content_batch)
        f_out, f_content, f_style = self.vgg(out), self.vgg(content_batch), self.vgg(style_batch)
        content = F.mse_loss(f_out[1], f_content[1])
        style = sum(F.mse_loss(gram_matrix(a), gram_matrix(s)) for a, s in zip(f_out, f_style))  # fault: gram-of-whole-batch
        return self.cw * content + self.sw * style


def example():
    g = torch.Generator().manual_seed(60)
    return torch.rand(3, 3, 16, 16, generator=g), torch.rand(3, 3, 16, 16, generator=g)

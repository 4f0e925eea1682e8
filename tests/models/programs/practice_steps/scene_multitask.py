"""Scene network with depth, normals and semantic class, weighted by learned uncertainty.

CORRECT: the losses are multiplied by exp(-s) and s itself is added (may make the loss negative); pixels without
depth are masked before the mean; the normals use 1 - cosine along the channel axis.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SceneNet(nn.Module):
    def __init__(self, ch=10, n_class=7):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(3, ch, 3, padding=1), nn.ReLU(),
            nn.Conv2d(ch, ch, 3, padding=1), nn.ReLU(),
        )
        self.depth = nn.Conv2d(ch, 1, 1)
        self.normal = nn.Conv2d(ch, 3, 1)
        self.sem = nn.Conv2d(ch, n_class, 1)

    def forward(self, x):
        h = self.trunk(x)
        return F.softplus(self.depth(h)).squeeze(1), self.normal(h), self.sem(h)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = SceneNet()
        self.log_var = nn.Parameter(torch.tensor([0.0, 0.3, -0.2]))

    def forward(self, image, depth, normal, label):
        d, n, s = self.net(image)
        valid = (depth > 0).float()
        err = (torch.log(d + 1e-3) - torch.log(depth.clamp(min=1e-3))).abs()
        loss_d = (err * valid).sum() / valid.sum().clamp(min=1)
        loss_n = (1 - F.cosine_similarity(n, normal, dim=1)).mean()
        loss_s = F.cross_entropy(s, label, ignore_index=255)
        losses = torch.stack([loss_d, loss_n, loss_s])
        return (torch.exp(-self.log_var) * losses + self.log_var).sum()


def example():
    g = torch.Generator().manual_seed(1)
    depth = torch.rand(5, 9, 11, generator=g) * 4 + 0.2
    depth[torch.rand(5, 9, 11, generator=g) > 0.8] = 0.0
    label = torch.randint(0, 7, (5, 9, 11), generator=g)
    label[torch.rand(5, 9, 11, generator=g) > 0.9] = 255
    normal = F.normalize(torch.randn(5, 3, 9, 11, generator=g), dim=1)
    return torch.rand(5, 3, 9, 11, generator=g), depth, normal, label

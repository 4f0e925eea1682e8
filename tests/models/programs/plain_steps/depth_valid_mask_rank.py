import torch
from torch import nn


class DepthStep(nn.Module):
    """monocular depth, scale-invariant log error"""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 1, 3, padding=1)

    def forward(self, rgb, depth):
        log_pred = self.conv2(torch.relu(self.conv1(rgb)))            # B 1 H W
        valid = (depth > 1e-3).float()  # fault: silent-broadcast-in-loss
        log_gt = torch.log(depth.clamp(min=1e-3)).unsqueeze(1)
        d = (log_pred - log_gt) * valid  # fault: silent-broadcast-in-loss
        n = valid.sum().clamp(min=1.0)
        return (d ** 2).sum() / n - 0.5 * d.sum() ** 2 / n ** 2


def example():
    depth = torch.rand(2, 12, 16) * 10 * (torch.rand(2, 12, 16) > 0.3)
    return (torch.rand(2, 3, 12, 16), depth)


Step = DepthStep

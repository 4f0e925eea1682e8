"""Scale-invariant depth loss; invalid ground truth is 0 and is multiplied away after the logarithm.

log(0) = -inf, -inf * 0 = nan as soon as one pixel has no measurement.  Fix: where(valid, gt, 1) before the log.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 1, 3, padding=1), nn.Softplus())

    def loggt(self, gt, valid):
        return torch.log(gt) * valid

    def forward(self, rgb, gt):
        valid = (gt > 0).float()
        d = torch.log(self.net(rgb) + 1e-3) * valid - self.loggt(gt, valid)  # fault: masked-after-logarithm
        n = valid.sum().clamp(min=1)
        return (d ** 2).sum() / n - 0.5 * d.sum() ** 2 / n ** 2


class Fixed(Step):
    def loggt(self, gt, valid):
        return torch.log(torch.where(gt > 0, gt, torch.ones_like(gt)))


def example():
    torch.manual_seed(47)
    return torch.rand(2, 3, 6, 6), torch.rand(2, 1, 6, 6) * 8 + .5

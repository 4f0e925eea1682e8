import torch
from torch import nn


class BoxRegressor(nn.Module):
    def __init__(self, size=128):
        super().__init__()
        self.size = size
        self.fc = nn.Linear(22, 4)

    def forward(self, feat, gt):
        cxcywh = torch.sigmoid(self.fc(feat))
        lo = cxcywh[:, :2] - cxcywh[:, 2:] / 2
        hi = cxcywh[:, :2] + cxcywh[:, 2:] / 2
        box = (torch.cat([lo, hi], dim=1) * self.size).int()  # fault: loss-detached-from-parameters
        lt, rb = torch.max(box[:, :2], gt[:, :2]), torch.min(box[:, 2:], gt[:, 2:])  # fault: loss-detached-from-parameters
        wh = (rb - lt).clamp(min=0)
        inter = wh[:, 0] * wh[:, 1]
        area = lambda b: (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
        iou = inter / (area(box) + area(gt) - inter)
        return 1 - iou.mean()


def example():
    p = torch.randint(0, 60, (6, 2))
    return (torch.randn(6, 22), torch.cat([p, p + 50], 1).float())


Step = BoxRegressor
OPEN = [{0: "batch"}, {0: "batch"}]

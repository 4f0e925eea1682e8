"""Pallet detector on a fixed grid: objectness, class and generalised IoU.

CORRECT: boxes are predicted as centre and size and converted to corners before the IoU; the loss is 1 - GIoU;
only cells with an object count in box and class loss, divided by their number.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


def to_corners(box):
    cx, cy, w, h = box.unbind(-1)
    return torch.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], dim=-1)


def giou(a, b, eps=1e-7):
    lt = torch.maximum(a[..., :2], b[..., :2])
    rb = torch.minimum(a[..., 2:], b[..., 2:])
    inter = (rb - lt).clamp(min=0).prod(dim=-1)
    area_a = (a[..., 2:] - a[..., :2]).prod(dim=-1)
    area_b = (b[..., 2:] - b[..., :2]).prod(dim=-1)
    union = area_a + area_b - inter
    hull = (torch.maximum(a[..., 2:], b[..., 2:]) - torch.minimum(a[..., :2], b[..., :2])).prod(dim=-1)
    return inter / (union + eps) - (hull - union) / (hull + eps)


class GridDetector(nn.Module):
    def __init__(self, n_class=3, ch=14):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, ch, 3, stride=2, padding=1), nn.SiLU(),
            nn.Conv2d(ch, ch, 3, stride=2, padding=1), nn.SiLU(),
            nn.Conv2d(ch, 5 + n_class, 1),
        )

    def forward(self, image):
        out = self.net(image).permute(0, 2, 3, 1).flatten(1, 2)  # [B, cells, 5 + C]
        return out[..., 0], torch.sigmoid(out[..., 1:5]), out[..., 5:]


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.detector = GridDetector()

    def forward(self, image, has_object, box, kind):
        # has_object [B, cells], box [B, cells, (cx, cy, w, h)] in 0..1, kind [B, cells]
        obj, pred_box, cls = self.detector(image)
        n_pos = has_object.sum().clamp(min=1)
        loss_obj = F.binary_cross_entropy_with_logits(obj, has_object)
        g = giou(to_corners(pred_box), to_corners(box))
        loss_box = ((1 - g) * has_object).sum() / n_pos
        ce = F.cross_entropy(cls.transpose(1, 2), kind, reduction="none")
        return loss_obj + 2.0 * loss_box + (ce * has_object).sum() / n_pos


def example():
    g = torch.Generator().manual_seed(1)
    return (
        torch.rand(5, 3, 16, 24, generator=g),
        (torch.rand(5, 24, generator=g) > 0.75).float(),
        torch.rand(5, 24, 4, generator=g) * 0.5 + 0.2,
        torch.randint(0, 3, (5, 24), generator=g),
    )

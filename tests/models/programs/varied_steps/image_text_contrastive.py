"""CLIP-like symmetric contrastive step over precomputed image and text features with a learnt logit scale.

MISTAKE (silent): the text-to-image term uses the same logits as the image-to-text term, so the texts never compete for images;
its logits have to be transposed.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, d_img=24, d_txt=16, d=10):
        super().__init__()
        self.img_proj = nn.Linear(d_img, d, bias=False)
        self.txt_proj = nn.Linear(d_txt, d, bias=False)
        self.logit_scale = nn.Parameter(torch.tensor(np.log(1 / 0.07), dtype=torch.float32))

    def similarities(self, img, txt):
        i = self.img_proj(img)
        t = self.txt_proj(txt)
        i = i / i.norm(dim=-1, keepdim=True).clamp(min=1e-6)
        t = t / t.norm(dim=-1, keepdim=True).clamp(min=1e-6)
        return self.logit_scale.exp() * i @ t.t()

    def forward(self, img, txt):
        logits_per_image = self.similarities(img, txt)
        logits_per_text = logits_per_image
        target = torch.arange(img.shape[0], device=img.device)
        loss_i = F.cross_entropy(logits_per_image, target)
        loss_t = F.cross_entropy(logits_per_text, target)  # fault: added-twice
        return (loss_i + loss_t) / 2  # fault: added-twice


class Fixed(Step):
    def forward(self, img, txt):
        logits_per_image = self.similarities(img, txt)
        logits_per_text = logits_per_image.t()
        target = torch.arange(img.shape[0], device=img.device)
        loss_i = F.cross_entropy(logits_per_image, target)
        loss_t = F.cross_entropy(logits_per_text, target)
        return (loss_i + loss_t) / 2


def example():
    torch.manual_seed(9)
    return torch.randn(5, 24), torch.randn(5, 16)

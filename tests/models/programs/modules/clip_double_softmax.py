"""CLIP style image/text step.

The similarity matrix goes through softmax and then into cross_entropy, which does a
log-softmax of its own: the logits live in [0, 1], the loss cannot get near zero and
gradients are tiny.  Fix: hand the raw logits to cross_entropy.
"""
import torch
from torch import nn
from torch.nn import functional as F

OPEN = [{0: "batch"}, {0: "batch"}]


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.image_proj = nn.Linear(20, 12, bias=False)
        self.text_proj = nn.Linear(14, 12, bias=False)
        self.logit_scale = nn.Parameter(torch.tensor(2.6592))

    def logits(self, images, texts):
        i = self.image_proj(images)
        t = self.text_proj(texts)
        i = i / i.norm(dim=-1, keepdim=True)
        t = t / t.norm(dim=-1, keepdim=True)
        return self.logit_scale.exp() * torch.einsum("id,jd->ij", i, t)

    def forward(self, images, texts):
        per_image = self.logits(images, texts)
        truth = torch.arange(per_image.size(0))
        probs = per_image.softmax(dim=-1)
        return F.cross_entropy(probs, truth)  # fault: probabilities-into-logit-loss


class Fixed(Step):
    def forward(self, images, texts):
        per_image = self.logits(images, texts)
        truth = torch.arange(per_image.size(0))
        return 0.5 * (F.cross_entropy(per_image, truth) + F.cross_entropy(per_image.t(), truth))


def example():
    torch.manual_seed(1)
    return torch.randn(5, 20), torch.randn(5, 14)

"""CLIP-like alignment of image and caption embeddings, with soft targets taken from how alike the captions are.

MISTAKE (silent): logsumexp(dim=1) is (N,) and is subtracted from the (N, N) logits along the columns, so row i of the log-probabilities is normalised with another row's sum; keepdim=True is missing.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, d_img=32, d_txt=24, d=16):
        super().__init__()
        self.img_proj = nn.Linear(d_img, d)
        self.txt_proj = nn.Linear(d_txt, d)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def log_prob(self, logits):
        return logits - torch.logsumexp(logits, dim=1)  # fault: silent-broadcast-in-loss

    def forward(self, img, txt, caption_sim):
        i = F.normalize(self.img_proj(img), dim=-1)
        t = F.normalize(self.txt_proj(txt), dim=-1)
        logits = self.scale.exp() * i @ t.T
        target = torch.softmax(caption_sim / 0.3, dim=1)
        i2t = -(target * self.log_prob(logits)).sum(1)  # fault: silent-broadcast-in-loss
        t2i = -(target * self.log_prob(logits.T)).sum(1)  # fault: silent-broadcast-in-loss
        return (i2t.mean() + t2i.mean()) / 2


class Fixed(Step):
    def log_prob(self, logits):
        return logits - torch.logsumexp(logits, dim=1, keepdim=True)


def example():
    torch.manual_seed(41)
    c = F.normalize(torch.randn(6, 5), dim=1)
    return torch.randn(6, 32), torch.randn(6, 24), c @ c.T

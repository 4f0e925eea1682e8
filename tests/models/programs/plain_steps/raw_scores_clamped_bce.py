import torch
from torch import nn


def bce(p, t, eps=1e-7):
    p = torch.clamp(p, eps, 1 - eps)
    return -(t * torch.log(p) + (1 - t) * torch.log(1 - p)).mean()


class LinkPredictor(nn.Module):
    def __init__(self, n=30, d=8):
        super().__init__()
        self.z = nn.Embedding(n, d)

    def forward(self, src, dst, label):
        score = (self.z(src) * self.z(dst)).sum(-1)
        return bce(score, label)  # fault: logits-into-probability-loss


def example():
    return (torch.randint(0, 30, (25,)), torch.randint(0, 30, (25,)), (torch.rand(25) > .5).float())


Step = LinkPredictor

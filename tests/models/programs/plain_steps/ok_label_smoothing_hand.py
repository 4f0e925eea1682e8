import torch
from torch import nn


class LabelSmoothing(nn.Module):
    def __init__(self, size=22, padding_idx=0, smoothing=0.1, d=12):
        super().__init__()
        self.gen = nn.Linear(d, size)
        self.size, self.padding_idx, self.smoothing = size, padding_idx, smoothing

    def forward(self, h, target):
        logp = torch.log_softmax(self.gen(h), dim=-1)
        true = torch.full_like(logp, self.smoothing / (self.size - 2))
        true = true.scatter(1, target.unsqueeze(1), 1.0 - self.smoothing)
        keep = torch.arange(self.size) != self.padding_idx
        true = true * keep
        row = (target != self.padding_idx).unsqueeze(1)
        true = true * row
        kl = true * (torch.log(true.clamp(min=1e-12)) - logp)
        return kl.sum() / row.sum()


def example():
    return (torch.randn(10, 12), torch.tensor([3, 0, 5, 21, 7, 0, 9, 1, 2, 4]))


Step = LabelSmoothing

"""Open-set classification: known classes plus auxiliary outlier images that are sent to an extra class.

MISTAKE (fails): the outliers get the class number n_classes (8), but the head has only 8 outputs, 0..7; the head needs one output more.
"""
import torch
from torch import nn
import torch.nn.functional as F

FAILS = True


class Step(nn.Module):
    n_classes = 8
    n_outputs = 8

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(50, 32), nn.ReLU(), nn.Linear(32, self.n_outputs))

    def forward(self, known, label, outliers):
        loss_in = F.cross_entropy(self.net(known), label)
        reject = torch.full((outliers.shape[0],), self.n_classes)
        loss_out = F.cross_entropy(self.net(outliers), reject)  # fault: class-index-out-of-range
        return loss_in + 0.5 * loss_out


class Fixed(Step):
    n_outputs = 9


def example():
    torch.manual_seed(137)
    return torch.randn(5, 50), torch.randint(0, 8, (5,)), torch.randn(4, 50)

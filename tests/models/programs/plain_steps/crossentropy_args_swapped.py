import torch
import torch.nn.functional as F
from torch import nn


def categorical_crossentropy(y_true, y_pred, eps=1e-6):
    """Keras order: (y_true, y_pred)"""
    return -(y_true * torch.log(y_pred + eps)).sum(-1).mean()


class KerasPort(nn.Module):
    def __init__(self, n_classes=6):
        super().__init__()
        self.n_classes = n_classes
        self.dense = nn.Linear(12, n_classes)

    def forward(self, x, y):
        probs = F.softmax(self.dense(x), dim=-1)
        onehot = F.one_hot(y, self.n_classes).float()
        return categorical_crossentropy(probs, onehot)  # fault: logarithm-of-labels


def example():
    return (torch.randn(16, 12), torch.randint(0, 6, (16,)))


Step = KerasPort

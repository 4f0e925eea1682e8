import torch
from torch import nn


def softmax(z):
    z = z - z.max(dim=1, keepdim=True).values
    e = torch.exp(z)
    return e / e.sum(dim=0, keepdim=True)  # fault: softmax-over-batch-axis


def cross_entropy(probs, onehot, eps=1e-9):
    return -(onehot * torch.log(probs + eps)).sum(dim=1).mean()


class SoftmaxRegression(nn.Module):
    def __init__(self, d, k):
        super().__init__()
        self.W = nn.Parameter(0.1 * torch.randn(d, k))
        self.b = nn.Parameter(torch.zeros(k))

    def forward(self, X, Y):
        return cross_entropy(softmax(X @ self.W + self.b), Y)  # fault: softmax-over-batch-axis


def example():
    return (torch.randn(21, 7), torch.eye(3)[torch.randint(0, 3, (21,))])


def Step():
    return SoftmaxRegression(7, 3)

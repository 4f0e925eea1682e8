# Linear SVM in PyTorch, from a blog post
import torch


class SVM(torch.nn.Module):
    def __init__(self, n_features, c=0.01):
        super().__init__()
        self.fully_connected = torch.nn.Linear(n_features, 1)
        self.c = c

    def forward(self, x, y):
        weight = self.fully_connected.weight.squeeze()
        output = self.fully_connected(x)
        loss = torch.mean(torch.clamp(1 - y * output, min=0))  # fault: silent-broadcast-in-loss
        loss = loss + self.c * (weight * weight).sum() / 2.0
        return loss


def example():
    return (torch.randn(25, 2), torch.sign(torch.randn(25)))


def Step():
    return SVM(2)

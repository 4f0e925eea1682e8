import torch
from torch import nn


def sq_dist(a, b):
    return (a - b).pow(2).sum(0)  # fault: reduction-over-batch-axis


class FaceNet(nn.Module):
    def __init__(self, emb=24):
        super().__init__()
        self.fc = nn.Linear(48, emb)

    def forward(self, anchor, positive, negative):
        a, p, n = self.fc(anchor), self.fc(positive), self.fc(negative)
        losses = torch.relu(sq_dist(a, p) - sq_dist(a, n) + 0.2)  # fault: reduction-over-batch-axis
        return losses.mean()


def example():
    return (torch.randn(7, 48), torch.randn(7, 48), torch.randn(7, 48))


Step = FaceNet
OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]

import torch
from torch import nn


class AttributeNet(nn.Module):
    """5 annotators' vote histogram for every one of 4 attributes with 3 grades"""

    def __init__(self, attributes=4, grades=3):
        super().__init__()
        self.shape = (attributes, grades)
        self.stem = nn.Sequential(nn.Linear(25, 32), nn.ELU())
        self.heads = nn.Linear(32, attributes * grades)
        self.logsm = nn.LogSoftmax(dim=1)  # fault: class-axis-position

    def forward(self, x, votes):
        logits = self.heads(self.stem(x)).unflatten(1, self.shape)
        target = votes / votes.sum(dim=2, keepdim=True)
        return -(target * self.logsm(logits)).sum(dim=2).mean()  # fault: class-axis-position


def example():
    return (torch.randn(10, 25), torch.randint(1, 6, (10, 4, 3)).float())


Step = AttributeNet
OPEN = [{0: "batch"}, {0: "batch"}]

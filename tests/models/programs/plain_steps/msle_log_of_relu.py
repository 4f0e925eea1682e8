import torch
import torch.nn.functional as F
from torch import nn


class SalesRMSLE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(15, 30)
        self.fc2 = nn.Linear(30, 1)

    def forward(self, x, sales):
        pred = F.relu(self.fc2(F.relu(self.fc1(x)))).view(-1)
        diff = torch.log(pred) - torch.log1p(sales)  # fault: invalid-domain
        return torch.sqrt(diff.pow(2).mean() + 1e-8)


def example():
    return (torch.randn(22, 15), torch.rand(22) * 50)


Step = SalesRMSLE

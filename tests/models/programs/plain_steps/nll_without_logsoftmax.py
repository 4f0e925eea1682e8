import torch
import torch.nn.functional as F
from torch import nn


class GCN(nn.Module):
    def __init__(self, nfeat=10, nhid=16, nclass=4):
        super().__init__()
        self.gc1 = nn.Linear(nfeat, nhid)
        self.gc2 = nn.Linear(nhid, nclass)

    def model(self, x, adj):
        x = F.relu(adj @ self.gc1(x))
        x = adj @ self.gc2(x)
        return x

    def forward(self, x, adj, labels, train_w):
        out = self.model(x, adj)
        return (F.nll_loss(out, labels, reduction="none") * train_w).sum() / train_w.sum()  # fault: logits-into-probability-loss


def example():
    n = 12
    a = ((torch.rand(n, n) > .7).float() + torch.eye(n)).clamp(max=1)
    return (torch.randn(n, 10), a / a.sum(1, keepdim=True), torch.randint(0, 4, (n,)), (torch.arange(n) < 6).float())


Step = GCN

import torch
import torch.nn.functional as F
from torch import nn


class ProtoNet(nn.Module):
    def __init__(self, n_way=5, dim=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(28, 32), nn.ReLU(), nn.Linear(32, dim))
        self.n_way = n_way

    def forward(self, query, query_y, support):
        # support [n_way, k_shot, feat]
        protos = self.encoder(support).mean(1)
        z = self.encoder(query)
        dist = ((protos.unsqueeze(1) - z.unsqueeze(0)) ** 2).sum(2)
        log_p = F.log_softmax(-dist, dim=1)  # fault: softmax-over-batch-axis
        return -log_p.gather(0, query_y.unsqueeze(0)).mean()


def example():
    return (torch.randn(15, 28), torch.randint(0, 5, (15,)), torch.randn(5, 3, 28))


Step = ProtoNet
OPEN = [{0: "batch"}, {0: "batch"}, None]

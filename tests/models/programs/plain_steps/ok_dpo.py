import torch
import torch.nn.functional as F
from torch import nn


class DPO(nn.Module):
    def __init__(self, v=30, d=10, beta=0.1):
        super().__init__()
        self.policy = nn.Sequential(nn.Embedding(v, d), nn.Linear(d, v))
        self.ref = nn.Sequential(nn.Embedding(v, d), nn.Linear(d, v)).requires_grad_(False)
        self.beta = beta

    def logps(self, m, ids, mask):
        lp = m(ids[:, :-1]).log_softmax(-1)
        tok = lp.gather(2, ids[:, 1:].unsqueeze(2)).squeeze(2)
        return (tok * mask[:, 1:]).sum(-1)

    def forward(self, win, win_mask, lose, lose_mask):
        pi = self.logps(self.policy, win, win_mask) - self.logps(self.policy, lose, lose_mask)
        ref = self.logps(self.ref, win, win_mask) - self.logps(self.ref, lose, lose_mask)
        return -F.logsigmoid(self.beta * (pi - ref)).mean()


def example():
    m = (torch.arange(8) < 6).float().expand(3, 8).contiguous()
    return (torch.randint(0, 30, (3, 8)), m, torch.randint(0, 30, (3, 8)), torch.ones(3, 8))


Step = DPO
OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}, {0: "batch"}]

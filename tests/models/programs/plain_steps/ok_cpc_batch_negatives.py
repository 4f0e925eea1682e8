import torch
from torch import nn


class CPC(nn.Module):
    def __init__(self, d=10, steps=3):
        super().__init__()
        self.enc = nn.Conv1d(1, d, 8, stride=4)
        self.gru = nn.GRU(d, 12, batch_first=True)
        self.wk = nn.ModuleList(nn.Linear(12, d) for _ in range(steps))

    def forward(self, wave):
        z = self.enc(wave).transpose(1, 2)
        c, _ = self.gru(z)
        t = z.shape[1] - len(self.wk) - 1
        nce = 0.0
        for k, w in enumerate(self.wk, 1):
            total = z[:, t + k] @ w(c[:, t]).t()
            nce = nce + torch.log_softmax(total, dim=0).diagonal().mean()
        return -nce / len(self.wk)


def example():
    return (torch.randn(6, 1, 64),)


Step = CPC

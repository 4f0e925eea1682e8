"""Event-stream model: Unix time stamps (int64 seconds) become hours since the dataset's epoch, a feature of the GRU that predicts the next event type.

MISTAKE (silent): the stamps are cast to float32 before the epoch 1.6e9 is taken away; at 1.7e9 float32 steps are 128 s, so short gaps vanish.
Subtract in int64, then cast.
"""
import torch
from torch import nn

EPOCH = 1_600_000_000


class Step(nn.Module):
    def __init__(self, n_types=7, d=12):
        super().__init__()
        self.emb = nn.Embedding(n_types, d)
        self.rnn = nn.GRU(d + 1, d, batch_first=True)
        self.fc = nn.Linear(d, n_types)

    def forward(self, stamp, kind):
        t = (stamp.float() - EPOCH) / 3600.0  # fault: difference-of-rounded-numbers
        gap = t[:, 1:] - t[:, :-1]
        x = torch.cat([self.emb(kind[:, :-1]), gap.unsqueeze(-1)], dim=-1)
        out, _ = self.rnn(x)
        return nn.functional.cross_entropy(self.fc(out).transpose(1, 2), kind[:, 1:])


class Fixed(Step):
    def forward(self, stamp, kind):
        t = (stamp - EPOCH).float() / 3600.0
        gap = t[:, 1:] - t[:, :-1]
        x = torch.cat([self.emb(kind[:, :-1]), gap.unsqueeze(-1)], dim=-1)
        out, _ = self.rnn(x)
        return nn.functional.cross_entropy(self.fc(out).transpose(1, 2), kind[:, 1:])


def example():
    torch.manual_seed(31)
    return 1_700_000_000 + torch.randint(1, 90, (4, 8)).cumsum(1), torch.randint(0, 7, (4, 8))


OPEN = [{0: "batch"}, {0: "batch"}]

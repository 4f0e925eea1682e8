"""Will the shop session end in a purchase: GRU over clicks, state at the last real click.

MISTAKE (silent): the state is gathered at index `length`, which is the first padding step; the last click is
at length - 1.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SessionGRU(nn.Module):
    def __init__(self, n_items=60, n_type=4, emb=10, hidden=18):
        super().__init__()
        self.item = nn.Embedding(n_items, emb, padding_idx=0)
        self.kind = nn.Embedding(n_type, 3)
        self.gru = nn.GRU(emb + 3, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, items, kinds, length):
        x = torch.cat([self.item(items), self.kind(kinds)], dim=-1)
        states, _ = self.gru(x)
        idx = length.view(-1, 1, 1).expand(-1, 1, states.size(2))
        last = states.gather(1, idx).squeeze(1)  # fault: step-after-last
        return self.head(last).squeeze(1)


class LastClickGRU(SessionGRU):
    def forward(self, items, kinds, length):
        x = torch.cat([self.item(items), self.kind(kinds)], dim=-1)
        states, _ = self.gru(x)
        idx = (length - 1).view(-1, 1, 1).expand(-1, 1, states.size(2))
        last = states.gather(1, idx).squeeze(1)
        return self.head(last).squeeze(1)


class Step(nn.Module):
    model_cls = SessionGRU

    def __init__(self):
        super().__init__()
        self.model = self.model_cls()

    def forward(self, items, kinds, length, bought):
        # length: number of clicks of the session, the rest is padded with item 0
        logit = self.model(items, kinds, length)
        return F.binary_cross_entropy_with_logits(logit, bought)


class Fixed(Step):
    model_cls = LastClickGRU


def example():
    g = torch.Generator().manual_seed(1)
    length = torch.tensor([8, 3, 5, 7, 2])
    pad = torch.arange(12)[None] >= length[:, None]
    items = torch.randint(1, 60, (5, 12), generator=g).masked_fill(pad, 0)
    kinds = torch.randint(1, 4, (5, 12), generator=g).masked_fill(pad, 0)
    return items, kinds, length, torch.tensor([1.0, 0.0, 0.0, 1.0, 0.0])

"""Passage regressor: masked mean of token states, then a relevance score fitted with MSE.

MISTAKE (silent): the denominator sums the mask over the whole batch, so each passage's mean is divided by the number of tokens of
all passages; it must be attention_mask.sum(1, keepdim=True).
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, vocab=100, dim=16):
        super().__init__()
        self.embeddings = nn.Embedding(vocab, dim)
        self.encoder = nn.GRU(dim, dim, batch_first=True)
        self.score = nn.Sequential(nn.Linear(dim, dim), nn.Tanh(), nn.Linear(dim, 1))
        self.loss_fn = nn.MSELoss()

    def forward(self, input_ids, attention_mask, relevance):
        hidden, _ = self.encoder(self.embeddings(input_ids))
        m = attention_mask.unsqueeze(-1).to(hidden.dtype)
        emb = (hidden * m).sum(dim=1) / m.sum().clamp(min=1e-9)  # fault: mean-over-padding
        return self.loss_fn(self.score(emb).squeeze(-1), relevance)


class Fixed(Step):
    def forward(self, input_ids, attention_mask, relevance):
        hidden, _ = self.encoder(self.embeddings(input_ids))
        m = attention_mask.unsqueeze(-1).to(hidden.dtype)
        emb = (hidden * m).sum(dim=1) / m.sum(dim=1).clamp(min=1e-9)
        return self.loss_fn(self.score(emb).squeeze(-1), relevance)


def example():
    torch.manual_seed(17)
    mask = (torch.arange(8)[None] < torch.tensor([8, 3, 5, 6])[:, None]).long()
    return torch.randint(0, 100, (4, 8)), mask, torch.rand(4)


OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]

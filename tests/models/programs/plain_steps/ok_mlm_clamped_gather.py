import torch
from torch import nn


class MLM(nn.Module):
    def __init__(self, vocab=33, d=10):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.dec = nn.Linear(d, vocab)

    def forward(self, ids, labels):
        logp = torch.log_softmax(self.dec(torch.tanh(self.emb(ids))), dim=-1)
        active = labels != -100
        safe = labels.masked_fill(~active, 0)
        nll = -logp.gather(-1, safe.unsqueeze(-1)).squeeze(-1)
        return nll.masked_fill(~active, 0.0).sum() / active.sum().clamp(min=1)


def example():
    lab = torch.randint(0, 33, (3, 8))
    return (torch.randint(0, 33, (3, 8)), torch.where(torch.rand(3, 8) > .4, torch.full_like(lab, -100), lab))


Step = MLM

"""Character language model with a GRU.

MISTAKE (silent): nll_loss gets softmax probabilities, so the loss is minus the mean probability; it needs
log_softmax.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class CharGRU(nn.Module):
    def __init__(self, n_chars=30, emb=12, hidden=24):
        super().__init__()
        self.embed = nn.Embedding(n_chars, emb)
        self.gru = nn.GRU(emb, hidden, num_layers=1, batch_first=True)
        self.decoder = nn.Linear(hidden, n_chars)

    def logits(self, chars):
        h, _ = self.gru(self.embed(chars))
        return self.decoder(h)

    def forward(self, chars):
        return F.softmax(self.logits(chars), dim=-1)


class CharGRULog(CharGRU):
    def forward(self, chars):
        return F.log_softmax(self.logits(chars), dim=-1)


class Step(nn.Module):
    net = CharGRU

    def __init__(self):
        super().__init__()
        self.model = self.net()
        self.criterion = nn.NLLLoss()

    def forward(self, text):
        inp, tgt = text[:, :-1], text[:, 1:]
        out = self.model(inp)
        return self.criterion(out.reshape(-1, out.shape[-1]), tgt.reshape(-1))  # fault: probabilities-into-logit-loss


class Fixed(Step):
    net = CharGRULog


def example():
    g = torch.Generator().manual_seed(1)
    return (torch.randint(0, 30, (5, 13), generator=g),)

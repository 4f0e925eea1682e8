"""Next-note model over ABC tunes with an LSTM.

MISTAKE (silent): the target is the input itself, not shifted; the model is asked for the token that it has just read.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, notes=32, d=20):
        super().__init__()
        self.embed = nn.Embedding(notes, d, padding_idx=0)
        self.lstm = nn.LSTM(d, 24, batch_first=True)
        self.proj = nn.Linear(24, notes)

    def split(self, tune):
        return tune[:, :-1], tune[:, :-1]  # fault: target-in-prediction

    def forward(self, tune):
        seen, wanted = self.split(tune)  # fault: target-in-prediction
        h, _ = self.lstm(self.embed(seen))
        logits = self.proj(h)
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), wanted.reshape(-1), ignore_index=0)  # fault: target-in-prediction


class Fixed(Step):
    def split(self, tune):
        return tune[:, :-1], tune[:, 1:]


def example():
    torch.manual_seed(35)
    t = torch.randint(1, 32, (4, 15))
    t[2, 11:] = 0
    return (t,)

"""Bidirectional-free GRU language model.

Position t must predict token t+1.  Both logits and targets are cut with [:, :-1]: the model is
trained to copy its current input token.  Fix: targets = tokens[:, 1:].
"""
import torch
import torch.nn.functional as F
from torch import nn

OPEN = [{0: "batch"}]


class Step(nn.Module):
    def __init__(self, V=40, D=16):
        super().__init__()
        self.tok = nn.Embedding(V, D)
        self.gru = nn.GRU(D, D, batch_first=True)
        self.head = nn.Linear(D, V)

    def pick(self, logits, tokens):
        shift_logits = logits[:, :-1].contiguous()
        shift_labels = tokens[:, :-1].contiguous()  # wrong: labels not shifted, predicts its own input
        return shift_logits, shift_labels

    def forward(self, tokens):
        h, _ = self.gru(self.tok(tokens))
        lo, la = self.pick(self.head(h), tokens)  # fault: target-in-prediction
        loss = F.cross_entropy(lo.view(-1, lo.size(-1)), la.view(-1))  # fault: target-in-prediction
        return loss, loss.exp()


class Fixed(Step):
    def pick(self, logits, tokens):
        return logits[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def example():
    torch.manual_seed(22)
    return (torch.randint(0, 40, (3, 12)),)

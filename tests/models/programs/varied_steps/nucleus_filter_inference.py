"""Last step of text generation: probabilities of the next token after top-p (nucleus) filtering of the logits.

MISTAKE (silent): the removal mask is in sorted order but is applied to the unsorted logits, so arbitrary tokens go; scatter it back by the sort's indices.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, d=12, vocab=20, p=0.8):
        super().__init__()
        self.lm_head = nn.Linear(d, vocab)
        self.p = p

    def forward(self, hidden):
        logits = self.lm_head(hidden) * 4
        s, idx = torch.sort(logits, dim=-1, descending=True)
        probs = s.softmax(-1)
        drop = (probs.cumsum(-1) - probs) > self.p
        logits = logits.masked_fill(drop, float("-inf"))  # fault: samples-in-other-order
        return logits.softmax(-1)


class Fixed(Step):
    def forward(self, hidden):
        logits = self.lm_head(hidden) * 4
        s, idx = torch.sort(logits, dim=-1, descending=True)
        probs = s.softmax(-1)
        drop = (probs.cumsum(-1) - probs) > self.p
        back = idx.argsort(-1)
        logits = logits.masked_fill(drop.gather(-1, back), float("-inf"))
        return logits.softmax(-1)


def example():
    return (torch.randn(4, 12, generator=torch.Generator().manual_seed(45)),)


EVAL = True
OPEN = [{0: "batch"}]

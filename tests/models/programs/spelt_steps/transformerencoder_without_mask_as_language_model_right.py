"""TransformerEncoder without mask as language model.

CORRECT: the same as it is meant.
"""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(20, 8); self.p = nn.Parameter(torch.randn(1, 6, 8)); self.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), 2, enable_nested_tensor=False); self.o = nn.Linear(8, 20)
        self.register_buffer("causal", nn.Transformer.generate_square_subsequent_mask(6))

    def forward(self, t):
        x, y = t[:, :-1], t[:, 1:]
        z = self.o(self.enc(self.e(x) + self.p, mask=self.causal))
        return F.cross_entropy(z.reshape(-1, 20), y.reshape(-1))


def example():
    torch.manual_seed(0)
    return (torch.randint(0, 20, (3, 7)),)

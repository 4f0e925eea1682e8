"""Intent encoder.

MISTAKE (silent): true must mean padding, here real tokens are masked out.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, vocab=1500, dim=64, n_intents=14, max_len=40):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim, padding_idx=0)
        self.pos = nn.Embedding(max_len, dim)
        self.layers = nn.ModuleList([
            nn.TransformerEncoderLayer(dim, 4, 128, dropout=0.0, batch_first=True, norm_first=True) for _ in range(2)])
        self.cls = nn.Linear(dim, n_intents)

    def forward(self, ids, intent):
        pad = ids != 0
        x = self.tok(ids) + self.pos(torch.arange(ids.shape[1], device=ids.device))
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=pad)  # fault: inverted-mask
        valid = (ids != 0).unsqueeze(-1).float()
        pooled = (x * valid).sum(1) / valid.sum(1).clamp(min=1)
        return F.cross_entropy(self.cls(pooled), intent)


def example():
    torch.manual_seed(0)
    ids = torch.randint(1, 1500, (16, 24))
    lens = torch.randint(6, 23, (16, 1))
    ids = torch.where(torch.arange(24)[None] < lens, ids, torch.zeros_like(ids))
    return ids, torch.randint(0, 14, (16,))

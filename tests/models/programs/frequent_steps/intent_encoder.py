"""Intent encoder.

MISTAKE (silent): src_key_padding_mask must be True on padding, this masks the real tokens.
"""
import torch
import torch.nn as nn

PAD = 0


class IntentClassifier(nn.Module):
    """Transformer encoder for short user utterances."""

    def __init__(self, vocab=70, dim=32, n_intents=6, max_len=16):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.pos = nn.Embedding(max_len, dim)
        self.encoder = nn.TransformerEncoderLayer(dim, nhead=4, dim_feedforward=64, dropout=0.1, batch_first=True)
        self.out = nn.Linear(dim, n_intents)

    def forward(self, tokens):
        pad_mask = tokens != PAD
        positions = torch.arange(tokens.shape[1]).unsqueeze(0)
        h = self.tok(tokens) + self.pos(positions)
        h = self.encoder(h, src_key_padding_mask=pad_mask)  # fault: inverted-mask
        keep = (tokens != PAD).unsqueeze(-1).float()
        pooled = (h * keep).sum(dim=1) / keep.sum(dim=1)
        return self.out(pooled)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = IntentClassifier()
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, tokens, intent):
        return self.criterion(self.model(tokens), intent)


def example():
    g = torch.Generator().manual_seed(39)
    tokens = torch.randint(1, 70, (5, 10), generator=g)
    lengths = torch.tensor([9, 4, 6, 8, 3])
    tokens = tokens.masked_fill(torch.arange(10)[None] >= lengths[:, None], PAD)
    return tokens, torch.randint(0, 6, (5,), generator=g)

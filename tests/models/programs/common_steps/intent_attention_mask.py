"""Intent attention mask.

MISTAKE (silent): attention mask multiplied into scores before softmax (0 instead of -inf).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class MaskedSelfAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.to_q = nn.Linear(dim, dim)
        self.to_k = nn.Linear(dim, dim)
        self.to_v = nn.Linear(dim, dim)
        self.scale = dim ** -0.5

    def forward(self, x, mask):
        q, k, v = self.to_q(x), self.to_k(x), self.to_v(x)
        scores = torch.bmm(q, k.transpose(1, 2)) * self.scale
        scores = scores * mask.unsqueeze(1)  # fault: multiplied-mask
        return torch.bmm(scores.softmax(dim=-1), v)  # fault: multiplied-mask


class IntentClassifier(nn.Module):
    def __init__(self, vocab=120, dim=20, n_intents=7):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        self.attn = MaskedSelfAttention(dim)
        self.norm = nn.LayerNorm(dim)
        self.cls = nn.Linear(dim, n_intents)

    def forward(self, ids, mask):
        x = self.embed(ids)
        x = self.norm(x + self.attn(x, mask))
        return self.cls(x[:, 0])


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = IntentClassifier()

    def forward(self, input_ids, attention_mask, intent):
        logits = self.model(input_ids, attention_mask.float())
        return F.cross_entropy(logits, intent)


def example():
    g = torch.Generator().manual_seed(13)
    ids = torch.randint(1, 120, (4, 11), generator=g)
    lens = torch.tensor([11, 7, 4, 9])
    mask = (torch.arange(11)[None] < lens[:, None]).long()
    return ids * mask, mask, torch.randint(0, 7, (4,), generator=g)

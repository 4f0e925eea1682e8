"""Text regression (readability score) with mean pooled token states.

MISTAKE (silent): divides by the padded length instead of mask.sum(1).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class MeanPooling(nn.Module):
    def forward(self, last_hidden_state, attention_mask):
        mask = attention_mask.unsqueeze(-1).expand(last_hidden_state.size()).float()
        mean_embeddings = (last_hidden_state * mask).mean(dim=1)  # fault: mean-over-padding
        return mean_embeddings


class Step(nn.Module):
    def __init__(self, vocab=60, dim=24):
        super().__init__()
        self.embeddings = nn.Embedding(vocab, dim, padding_idx=0)
        self.conv = nn.Conv1d(dim, dim, 3, padding=1)
        self.norm = nn.LayerNorm(dim)
        self.pooler = MeanPooling()
        self.fc = nn.Linear(dim, 1)

    def forward(self, input_ids, score):
        attention_mask = input_ids != 0
        x = self.embeddings(input_ids)
        x = self.norm(x + F.gelu(self.conv(x.transpose(1, 2)).transpose(1, 2)))
        feature = self.pooler(x, attention_mask)
        pred = self.fc(feature).squeeze(-1)
        return torch.sqrt(F.mse_loss(pred, score) + 1e-6)


def example():
    g = torch.Generator().manual_seed(23)
    ids = torch.randint(1, 60, (6, 12), generator=g)
    lengths = torch.tensor([12, 9, 4, 7, 11, 5])
    ids = ids * (torch.arange(12)[None] < lengths[:, None])
    return ids, torch.randn(6, generator=g)

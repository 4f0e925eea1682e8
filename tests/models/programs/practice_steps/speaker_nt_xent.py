"""Speaker embeddings from pairs of utterances with an NT-Xent loss.

CORRECT: the similarity matrix [2N, 2N] is wanted, the diagonal is excluded before the softmax, the labels are
made from arange and roll by N.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class UtteranceEncoder(nn.Module):
    def __init__(self, n_mels=20, ch=18, emb=12):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(n_mels, ch, 5, padding=2), nn.ReLU(),
            nn.Conv1d(ch, ch, 3, padding=2, dilation=2), nn.ReLU(),
        )
        self.fc = nn.Linear(2 * ch, emb)

    def forward(self, mel):
        # mel: [batch, mels, frames]; statistics pooling over the frames
        h = self.conv(mel)
        mean = h.mean(dim=2)
        std = (h.var(dim=2, unbiased=False) + 1e-5).sqrt()
        return self.fc(torch.cat([mean, std], dim=1))


class Step(nn.Module):
    def __init__(self, tau=0.2):
        super().__init__()
        self.tau = tau
        self.encoder = UtteranceEncoder()

    def forward(self, utt_a, utt_b):
        n = utt_a.shape[0]
        z = torch.cat([self.encoder(utt_a), self.encoder(utt_b)], dim=0)
        sim = F.cosine_similarity(z.unsqueeze(1), z.unsqueeze(0), dim=-1) / self.tau
        sim = sim - 1e9 * torch.eye(2 * n)
        labels = torch.arange(2 * n).roll(n, dims=0)
        return F.cross_entropy(sim, labels)


def example():
    g = torch.Generator().manual_seed(1)
    return torch.randn(5, 20, 30, generator=g), torch.randn(5, 20, 30, generator=g)

"""Linear-chain CRF negative log-likelihood with padding: labels of padded steps are clamped to 0 before
gathering and masked after; the forward recursion keeps the old alpha on padded steps."""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, V=20, K=4, d=8):
        super().__init__()
        self.emb = nn.Embedding(V, d)
        self.fc = nn.Linear(d, K)
        self.T = nn.Parameter(torch.randn(K, K) * 0.1)
        self.K = K

    def forward(self, words, tags):
        mask = tags.ne(-100)
        safe = tags.clamp(min=0)
        em = self.fc(self.emb(words))
        gold = (em.gather(2, safe.unsqueeze(2)).squeeze(2) * mask).sum(1)
        pair = self.T.view(-1)[safe[:, :-1] * self.K + safe[:, 1:]]
        gold = gold + (pair * mask[:, 1:]).sum(1)
        alpha = em[:, 0]
        for t in range(1, words.shape[1]):
            nxt = torch.logsumexp(alpha.unsqueeze(2) + self.T.unsqueeze(0), dim=1) + em[:, t]
            alpha = torch.where(mask[:, t, None], nxt, alpha)
        return (alpha.logsumexp(1) - gold).mean()


def example():
    torch.manual_seed(66)
    tags = torch.randint(0, 4, (3, 6))
    tags[1, 4:] = -100
    tags[2, 2:] = -100
    return torch.randint(0, 20, (3, 6)), tags

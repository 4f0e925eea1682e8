import torch
from torch import nn


class CRFTagger(nn.Module):
    def __init__(self, tags=5, vocab=40, d=12):
        super().__init__()
        self.emb, self.emit = nn.Embedding(vocab, d), nn.Linear(d, tags)
        self.trans = nn.Parameter(torch.randn(tags, tags) * 0.1)
        self.start, self.end = nn.Parameter(torch.zeros(tags)), nn.Parameter(torch.zeros(tags))

    def forward(self, words, tags):
        e = self.emit(self.emb(words))                       # B T K
        score = self.start[tags[:, 0]] + e[:, 0].gather(1, tags[:, :1]).squeeze(1)
        alpha = self.start + e[:, 0]
        for t in range(1, words.shape[1]):
            alpha = torch.logsumexp(alpha.unsqueeze(2) + self.trans + e[:, t].unsqueeze(1), dim=1)
            score = score + self.trans[tags[:, t - 1], tags[:, t]] + e[:, t].gather(1, tags[:, t:t + 1]).squeeze(1)
        log_z = torch.logsumexp(alpha + self.end, dim=1)
        return (log_z - score - self.end[tags[:, -1]]).mean()


def example():
    return (torch.randint(0, 40, (3, 6)), torch.randint(0, 5, (3, 6)))


Step = CRFTagger

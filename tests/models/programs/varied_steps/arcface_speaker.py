"""Speaker recognition with an additive angular margin (ArcFace).

MISTAKE (may): the class weights are not normalised, so the "cosine" can leave [-1, 1] and acos gives NaN; both sides need F.normalize (and a clamp).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, speakers=9, dim=16, s=20.0, m=0.3):
        super().__init__()
        self.tdnn = nn.Sequential(nn.Conv1d(20, 24, 5), nn.ReLU())
        self.emb = nn.Linear(48, dim)
        self.weight = nn.Parameter(torch.empty(speakers, dim))
        nn.init.xavier_uniform_(self.weight)
        self.s, self.m = s, m

    def cosine(self, e):
        return F.linear(F.normalize(e), self.weight)

    def forward(self, mfcc, speaker):
        h = self.tdnn(mfcc)
        e = self.emb(torch.cat([h.mean(2), h.std(2)], 1))
        cos = self.cosine(e)
        theta = torch.acos(cos)  # fault: logits-into-probability-loss
        hit = F.one_hot(speaker, cos.size(1)).float()
        return F.cross_entropy(self.s * torch.cos(theta + self.m * hit), speaker)


class Fixed(Step):
    def cosine(self, e):
        return F.linear(F.normalize(e), F.normalize(self.weight)).clamp(-1 + 1e-6, 1 - 1e-6)


def example():
    torch.manual_seed(101)
    return torch.randn(4, 20, 25), torch.randint(0, 9, (4,))

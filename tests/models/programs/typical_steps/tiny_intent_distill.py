"""Distilling an intent classifier into a small student.

MISTAKE (silent): kl_div gets student probabilities as its input; it expects log-probabilities (log_softmax).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class BagOfWords(nn.Module):
    def __init__(self, hidden, vocab=80, n_intents=9):
        super().__init__()
        self.embed = nn.Embedding(vocab, hidden)
        self.fc = nn.Linear(hidden, n_intents)

    def forward(self, ids):
        return self.fc(torch.tanh(self.embed(ids).mean(dim=1)))


class Step(nn.Module):
    def __init__(self, temperature=4.0, alpha=0.7):
        super().__init__()
        self.teacher = BagOfWords(32)
        self.student = BagOfWords(8)
        for p in self.teacher.parameters():
            p.requires_grad_(False)
        self.T = temperature
        self.alpha = alpha

    def forward(self, ids, intent):
        s = self.student(ids)
        t = self.teacher(ids)
        soft = F.kl_div(F.softmax(s / self.T, dim=1), F.softmax(t / self.T, dim=1), reduction="batchmean")  # fault: probabilities-into-logit-loss
        hard = F.cross_entropy(s, intent)
        return self.alpha * self.T ** 2 * soft + (1 - self.alpha) * hard


class Fixed(Step):
    def forward(self, ids, intent):
        s = self.student(ids)
        t = self.teacher(ids)
        soft = F.kl_div(F.log_softmax(s / self.T, dim=1), F.softmax(t / self.T, dim=1), reduction="batchmean")
        hard = F.cross_entropy(s, intent)
        return self.alpha * self.T ** 2 * soft + (1 - self.alpha) * hard


def example():
    g = torch.Generator().manual_seed(1)
    return (torch.randint(0, 80, (7, 10), generator=g), torch.randint(0, 9, (7,), generator=g))


OPEN = [{0: "batch"}, {0: "batch"}]

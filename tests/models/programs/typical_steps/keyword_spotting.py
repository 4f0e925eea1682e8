"""Spoken keyword recognition from log-mel frames [batch, mels, time].

MISTAKE (silent): NLLLoss gets softmax probabilities; it needs log_softmax.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class KeywordNet(nn.Module):
    def __init__(self, mels=20, channels=16, n_words=10):
        super().__init__()
        self.conv1 = nn.Conv1d(mels, channels, 5, padding=2)
        self.conv2 = nn.Conv1d(channels, channels, 5, padding=4, dilation=2)
        self.fc = nn.Linear(channels, n_words)

    def forward(self, mel):
        h = F.relu(self.conv1(mel))
        h = F.relu(self.conv2(h)) + h
        return self.fc(h.mean(dim=-1))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = KeywordNet()
        self.nll = nn.NLLLoss()

    def forward(self, mel, word):
        out = F.softmax(self.net(mel), dim=-1)
        return self.nll(out, word)  # fault: probabilities-into-logit-loss


class Fixed(Step):
    def forward(self, mel, word):
        out = F.log_softmax(self.net(mel), dim=-1)
        return self.nll(out, word)


def example():
    g = torch.Generator().manual_seed(1)
    return (torch.randn(7, 20, 32, generator=g), torch.randint(0, 10, (7,), generator=g))


OPEN = [{0: "batch"}, {0: "batch"}]

"""Time major phonemes.

CORRECT: time-major data with a default nn.LSTM, mean over dim 0 (time), permute(0,2,1) for CE.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class PhonemeTagger(nn.Module):
    """Fixed-length crops, time-major (T, B, n_mels); label -1 marks noise frames nobody annotated."""

    def __init__(self, n_mels=20, hidden=16, n_phones=11):
        super().__init__()
        self.rnn = nn.LSTM(n_mels, hidden, bidirectional=True)
        self.out = nn.Linear(2 * hidden, n_phones)
        self.utt = nn.Linear(2 * hidden, 3)

    def forward(self, frames):
        h, (h_n, _) = self.rnn(frames)
        speaker_emb = torch.cat([h_n[0], h_n[1]], dim=-1)  # forward end, backward end
        return self.out(h), self.utt(speaker_emb)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = PhonemeTagger()

    def forward(self, frames, phones, accent):
        frames = frames - frames.mean(dim=0, keepdim=True)   # cepstral mean subtraction over time
        logits, accent_logits = self.net(frames)
        tag = F.cross_entropy(logits.permute(0, 2, 1), phones, ignore_index=-1)
        acc = F.cross_entropy(accent_logits, accent)
        return tag + 0.3 * acc


def example():
    torch.manual_seed(27)
    phones = torch.randint(0, 11, (17, 4))
    phones[12:, 2] = -1
    return torch.randn(17, 4, 20), phones, torch.randint(0, 3, (4,))

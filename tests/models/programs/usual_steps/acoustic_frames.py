"""Acoustic frames.

MISTAKE (silent): [B] / [B,1] gives [B,B], utterances divided by others' lengths.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class AcousticModel(nn.Module):
    def __init__(self, n_mels=24, hidden=36, n_phones=17, n_layers=2):
        super().__init__()
        layers = []
        c = n_mels
        for _ in range(n_layers):
            layers += [nn.Conv1d(c, hidden, 3, padding=1), nn.ReLU()]
            c = hidden
        self.conv = nn.Sequential(*layers)
        self.proj = nn.Linear(hidden, n_phones)

    def forward(self, mels):
        h = self.conv(mels.transpose(1, 2)).transpose(1, 2)
        return self.proj(h)


def length_mask(lengths, max_len):
    return (torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]).float()


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.am = AcousticModel()

    def forward(self, mels, phones, lengths):
        logits = self.am(mels)
        B, T, C = logits.shape
        ce = F.cross_entropy(logits.reshape(B * T, C), phones.reshape(B * T), reduction="none").view(B, T)
        mask = length_mask(lengths, T)
        n_frames = mask.sum(dim=1, keepdim=True)
        per_utt = (ce * mask).sum(dim=1) / n_frames  # fault: silent-broadcast-in-loss
        return per_utt.mean()


def example():
    torch.manual_seed(0)
    return torch.randn(6, 31, 24), torch.randint(0, 17, (6, 31)), torch.tensor([31, 28, 22, 15, 30, 9])

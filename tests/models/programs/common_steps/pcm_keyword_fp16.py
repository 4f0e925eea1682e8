"""Pcm keyword fp16.

MISTAKE (silent): float16 overflow: squares of int16 PCM samples become inf, waveform is normalised to 0.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class KeywordNet(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.conv1 = nn.Conv1d(1, 12, 16, stride=8)
        self.conv2 = nn.Conv1d(12, 24, 5, stride=2)
        self.fc = nn.Linear(24, n_classes)

    def forward(self, wav):
        h = F.relu(self.conv1(wav.unsqueeze(1)))
        h = F.relu(self.conv2(h))
        return self.fc(h.mean(dim=-1))


def loudness_normalize(pcm):
    # keep the waveform in half precision to halve the host->device traffic
    wav = pcm.half()
    rms = wav.pow(2).mean(dim=-1, keepdim=True).sqrt()  # fault: low-precision-accumulation
    return wav / (rms + 1e-3)


class Step(nn.Module):
    def __init__(self, n_classes=10):
        super().__init__()
        self.net = KeywordNet(n_classes)

    def forward(self, pcm, keyword):
        wav = loudness_normalize(pcm)  # fault: low-precision-accumulation
        logits = self.net(wav.float())
        return F.cross_entropy(logits, keyword)


def example():
    torch.manual_seed(2)
    pcm = (torch.randn(4, 400) * 6000).clamp(-32768, 32767).to(torch.int16)
    return pcm, torch.randint(0, 10, (4,))

"""Smoothed ce.

MISTAKE (silent): smoothing not divided by num_classes, targets sum to 1 + (C-1)*eps.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class LabelSmoothingLoss(nn.Module):
    def __init__(self, num_classes, smoothing=0.1):
        super().__init__()
        self.num_classes = num_classes
        self.smoothing = smoothing

    def forward(self, logits, target):
        log_probs = F.log_softmax(logits, dim=-1)
        with torch.no_grad():
            one_hot = F.one_hot(target, self.num_classes).float()
            soft = one_hot * (1.0 - self.smoothing) + self.smoothing  # fault: probability-out-of-range
        return -(soft * log_probs).sum(dim=-1).mean()  # fault: probability-out-of-range


class MLPMixerLite(nn.Module):
    def __init__(self, patches=16, dim=24, n_classes=12):
        super().__init__()
        self.embed = nn.Linear(27, dim)
        self.token_mix = nn.Linear(patches, patches)
        self.chan_mix = nn.Linear(dim, dim)
        self.head = nn.Linear(dim, n_classes)

    def forward(self, x):
        x = self.embed(x)
        x = x + self.token_mix(x.transpose(1, 2)).transpose(1, 2)
        x = x + F.gelu(self.chan_mix(x))
        return self.head(x.mean(dim=1))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = MLPMixerLite()
        self.criterion = LabelSmoothingLoss(12, smoothing=0.1)

    def forward(self, patches, labels):
        return self.criterion(self.model(patches), labels)


def example():
    torch.manual_seed(0)
    return torch.randn(20, 16, 27), torch.randint(0, 12, (20,))

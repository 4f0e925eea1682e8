"""Next-note model: dilated causal convolutions over a melody.

MISTAKE (silent): the shift is the wrong way round: the output at step t+1 is compared with note t, which the
network has already read; it should be logits[:, :-1] against notes[:, 1:].
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class CausalConv(nn.Module):
    def __init__(self, ch, dilation):
        super().__init__()
        self.pad = 2 * dilation
        self.conv = nn.Conv1d(ch, 2 * ch, kernel_size=3, dilation=dilation)

    def forward(self, x):
        a, b = self.conv(F.pad(x, (self.pad, 0))).chunk(2, dim=1)
        return x + torch.tanh(a) * torch.sigmoid(b)


class MelodyNet(nn.Module):
    def __init__(self, n_notes=32, ch=14):
        super().__init__()
        self.embed = nn.Embedding(n_notes, ch)
        self.layers = nn.Sequential(CausalConv(ch, 1), CausalConv(ch, 2))
        self.head = nn.Conv1d(ch, n_notes, 1)

    def forward(self, notes):
        x = self.embed(notes).transpose(1, 2)
        return self.head(self.layers(x)).transpose(1, 2)  # [B, T, n_notes]


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = MelodyNet()

    def forward(self, notes):
        logits = self.model(notes)
        shift_logits = logits[:, 1:, :]
        shift_labels = notes[:, :-1]
        return F.cross_entropy(  # fault: target-in-prediction
            shift_logits.reshape(-1, shift_logits.size(-1)), shift_labels.reshape(-1)
        )


class Fixed(Step):
    def forward(self, notes):
        logits = self.model(notes)
        shift_logits = logits[:, :-1, :]
        shift_labels = notes[:, 1:]
        return F.cross_entropy(
            shift_logits.reshape(-1, shift_logits.size(-1)), shift_labels.reshape(-1)
        )


def example():
    g = torch.Generator().manual_seed(1)
    return (torch.randint(0, 32, (6, 15), generator=g),)


OPEN = [{0: "batch"}]

"""Text-to-speech mel regression on padded frames.

Padded frames are zeroed in the error and then .mean() divides by *all* frames: short
utterances in a padded batch weigh less and the loss depends on the padding.
Fix: divide by the number of valid frames times mel channels.
"""
import torch
from torch import nn

OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(12, 20, kernel_size=3, padding=1)
        self.mel = nn.Conv1d(20, 8, kernel_size=1)

    def reduce(self, err, valid):
        return (err * valid).mean()  # wrong: mean over padded frames too

    def forward(self, phones, mel, lengths):
        pred = self.mel(torch.relu(self.conv(phones)))
        steps = torch.arange(mel.shape[-1])
        valid = (steps.unsqueeze(0) < lengths.unsqueeze(1)).unsqueeze(1).to(mel.dtype)
        return self.reduce((pred - mel).abs(), valid)  # fault: mean-over-padding


class Fixed(Step):
    def reduce(self, err, valid):
        return (err * valid).sum() / (valid.sum() * err.size(1)).clamp(min=1.0)


def example():
    torch.manual_seed(21)
    return torch.randn(3, 12, 15), torch.randn(3, 8, 15), torch.tensor([15, 9, 4])

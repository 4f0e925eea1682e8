"""Audio-text contrastive training, both directions from one similarity matrix.

CORRECT: log_softmax over dim=0 looks like the wrong axis but is the text-to-audio direction (each column is one text against all audio clips); the diagonal is the positive in both directions.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.audio = nn.Sequential(nn.Conv1d(16, 20, 3), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(20, 12))
        self.text = nn.EmbeddingBag(60, 12)
        self.logit_scale = nn.Parameter(torch.tensor(1.5))

    def forward(self, mel, tokens):
        a = F.normalize(self.audio(mel), dim=1)
        t = F.normalize(self.text(tokens), dim=1)
        sim = self.logit_scale.exp() * (a @ t.T)
        audio_to_text = sim.log_softmax(dim=1).diagonal()
        text_to_audio = sim.log_softmax(dim=0).diagonal()
        return -(audio_to_text + text_to_audio).mean() / 2


def example():
    torch.manual_seed(0)
    return torch.randn(5, 16, 14), torch.randint(0, 60, (5, 7))

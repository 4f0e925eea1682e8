"""Voice-activity detector on 16-bit PCM audio: log energy per frame and a GRU over the frames, speech/no speech per frame.

MISTAKE (silent): frames * frames is computed in int16 and wraps for |sample| > 181; convert to float before squaring.
"""
import torch
from torch import nn


class Step(nn.Module):
    FRAME = 16

    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(1, 10, batch_first=True)
        self.out = nn.Linear(10, 1)
        self.bce = nn.BCEWithLogitsLoss()

    def energy(self, frames):
        return (frames * frames).float().mean(-1)  # fault: byte-arithmetic-wraps

    def forward(self, pcm, speech):
        frames = pcm.reshape(pcm.shape[0], -1, self.FRAME)
        e = torch.log10(self.energy(frames).clamp(min=1.0))  # fault: byte-arithmetic-wraps
        h, _ = self.rnn(e.unsqueeze(-1))
        return self.bce(self.out(h).squeeze(-1), speech)


class Fixed(Step):
    def energy(self, frames):
        f = frames.float()
        return (f * f).mean(-1)


def example():
    g = torch.Generator().manual_seed(50)
    wav = (8000 * torch.randn(3, 160, generator=g)).clamp(-32768, 32767).to(torch.int16)
    return wav, (torch.rand(3, 10, generator=g) > 0.5).float()

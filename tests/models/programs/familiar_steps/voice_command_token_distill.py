"""Distils a recurrent decoder of voice commands frame by frame. Both softmaxes run over the time axis of (batch, time, vocabulary); they should run over the vocabulary (-1)."""
import torch
import torch.nn.functional as F
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, vocab=30):
        super().__init__()
        self.student_rnn = nn.GRU(20, 24, batch_first=True)
        self.student_out = nn.Linear(24, vocab)
        self.teacher_rnn = nn.GRU(20, 48, batch_first=True)
        self.teacher_out = nn.Linear(48, vocab)

    def forward(self, frames):
        hs, _ = self.student_rnn(frames)
        s_logits = self.student_out(hs)
        with torch.no_grad():
            ht, _ = self.teacher_rnn(frames)
            t_logits = self.teacher_out(ht)
        log_s = F.log_softmax(s_logits, dim=1)  # fault: class-axis-position
        log_t = F.log_softmax(t_logits, dim=1)  # fault: class-axis-position
        kl = log_t.exp() * (log_t - log_s)
        return kl.sum(-1).mean()  # fault: class-axis-position


def example():
    """A tuple of tensors, with realistic dtypes."""
    torch.manual_seed(0)
    return (torch.randn(4, 17, 20),)

"""Discrete-time survival: hazard logits per interval, likelihood by accumulating log(1 - h).

MISTAKE (silent): the log survival is accumulated over the patients (dim 0) rather than over the intervals (dim 1).
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    """time: index of the interval of event or censoring; event: 1 if observed"""

    def __init__(self, bins=10):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, bins))

    def accumulate(self, log_stay):
        return torch.cumsum(log_stay, dim=0)  # fault: reduction-over-batch-axis

    def forward(self, x, time, event):
        z = self.net(x)
        log_h, log_stay = F.logsigmoid(z), F.logsigmoid(-z)
        log_s = self.accumulate(log_stay)  # fault: reduction-over-batch-axis
        log_s_prev = log_s - log_stay
        idx = time[:, None]
        died = log_s_prev.gather(1, idx) + log_h.gather(1, idx)
        lived = log_s.gather(1, idx)
        ll = event * died.squeeze(1) + (1 - event) * lived.squeeze(1)
        return -ll.mean()


class Fixed(Step):
    def accumulate(self, log_stay):
        return torch.cumsum(log_stay, dim=1)


def example():
    torch.manual_seed(39)
    return torch.randn(6, 6), torch.randint(0, 10, (6,)), torch.tensor([1., 0, 1, 1, 0, 1])


OPEN = [{0: "patients"}, {0: "patients"}, {0: "patients"}]

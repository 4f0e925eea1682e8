"""Multi-label machine defect tagging from several sensors.

MISTAKE (silent): the network ends in a sigmoid and the loss is the with-logits form, so that the sigmoid is applied twice.
"""
import torch
from torch import nn


class SensorEncoder(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv = nn.Conv1d(c, 12, 7, stride=3)
        self.bn = nn.BatchNorm1d(12)

    def forward(self, x):
        return torch.relu(self.bn(self.conv(x))).mean(-1)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.vib, self.cur = SensorEncoder(3), SensorEncoder(1)
        self.tags = nn.Linear(24, 6)
        self.register_buffer("pos_weight", torch.tensor([3., 8., 2., 5., 5., 1.]))

    def output(self, h):
        return self.tags(h).sigmoid()  # fault: probabilities-into-logit-loss

    def forward(self, vibration, current, tags):
        h = torch.cat([self.vib(vibration), self.cur(current)], dim=1)
        y = self.output(h)  # fault: probabilities-into-logit-loss
        return nn.functional.binary_cross_entropy_with_logits(y, tags, pos_weight=self.pos_weight)  # fault: probabilities-into-logit-loss


class Fixed(Step):
    def output(self, h):
        return self.tags(h)


def example():
    torch.manual_seed(53)
    return torch.randn(4, 3, 60), torch.randn(4, 1, 60), (torch.rand(4, 6) < 0.3).float()

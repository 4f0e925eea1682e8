"""Music tagging (multi-label): the student learns the teacher's tag probabilities along with the true tags.

CORRECT: the teacher's sigmoid output is a probability on purpose, as the *target* of BCE with logits; the student's side stays a logit.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, tags=15):
        super().__init__()
        self.teacher = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, tags), nn.Sigmoid()).requires_grad_(False)
        self.student = nn.Linear(32, tags)

    def forward(self, clip, tags):
        soft = self.teacher(clip)
        out = self.student(clip)
        target = torch.lerp(tags.float(), soft, 0.4)
        return F.binary_cross_entropy_with_logits(out, target)


def example():
    torch.manual_seed(13)
    return torch.randn(5, 32), torch.rand(5, 15) < 0.3


OPEN = [{0: "clips"}, {0: "clips"}]

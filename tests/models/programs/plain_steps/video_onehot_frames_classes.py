import torch
import torch.nn.functional as F
from torch import nn

ACTIONS = 8
FRAMES = 8


class ActionTCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.tcn = nn.Sequential(nn.Conv1d(18, 24, 3, padding=1), nn.ReLU(), nn.Conv1d(24, ACTIONS, 1))

    def forward(self, pose, action):
        logits = self.tcn(pose)                                   # [B, ACTIONS, FRAMES]
        soft = F.one_hot(action, ACTIONS).float() * 0.9 + 0.1 / ACTIONS  # fault: class-axis-position
        return -(soft * F.log_softmax(logits, dim=1)).sum(dim=1).mean()  # fault: class-axis-position


def example():
    return (torch.randn(3, 18, FRAMES), torch.randint(0, ACTIONS, (3, FRAMES)))


Step = ActionTCN

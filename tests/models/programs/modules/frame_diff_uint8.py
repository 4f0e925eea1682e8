"""Motion head trained on the absolute difference of two camera frames (uint8).

uint8 - uint8 wraps around modulo 256: 10 - 12 is 254.  Every darkening pixel becomes a strong
motion.  Fix: convert to float before the subtraction.
"""
import torch
import torch.nn.functional as F
from torch import nn

OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, stride=2)
        self.fc = nn.Linear(6, 2)

    def motion(self, prev, cur):
        return (cur - prev).float() / 255.0  # wrong: uint8 subtraction wraps around

    def forward(self, prev, cur, label):
        f = F.relu(self.conv(self.motion(prev, cur).abs()))  # fault: unsigned-difference-wraps
        logits = self.fc(f.mean(dim=[2, 3]))
        acc = (logits.argmax(1) == label).float().mean()
        return F.cross_entropy(logits, label), acc


class Fixed(Step):
    def motion(self, prev, cur):
        return (cur.float() - prev.float()) / 255.0


def example():
    torch.manual_seed(28)
    a = torch.randint(0, 256, (2, 3, 12, 12), dtype=torch.uint8)
    b = torch.randint(0, 256, (2, 3, 12, 12), dtype=torch.uint8)
    return a, b, torch.tensor([0, 1])

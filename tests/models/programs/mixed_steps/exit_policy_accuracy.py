"""Early-exit image classifier: the exit head is rewarded for the accuracy it reaches.

MISTAKE (silent): the reward term is the accuracy of argmax decisions, which has no gradient for the exit head; use the probability of the label.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, classes=6):
        super().__init__()
        self.block1 = nn.Sequential(nn.Conv2d(3, 12, 3, 2), nn.ReLU())
        self.block2 = nn.Sequential(nn.Conv2d(12, 20, 3, 2), nn.ReLU())
        self.exit1 = nn.Linear(12, classes)
        self.final = nn.Linear(20, classes)

    def hit(self, logits, y):
        return (logits.argmax(dim=1) == y).float()  # fault: loss-detached-from-parameters

    def forward(self, x, y):
        a = self.block1(x)
        early = self.exit1(a.mean(dim=(2, 3)))
        late = self.final(self.block2(a).mean(dim=(2, 3)))
        miss = 1.0 - self.hit(early, y).mean()  # fault: loss-detached-from-parameters
        return F.cross_entropy(late, y) + 0.3 * miss


class Fixed(Step):
    def hit(self, logits, y):
        return logits.softmax(dim=1).gather(1, y[:, None]).squeeze(1)


def example():
    torch.manual_seed(31)
    return torch.randn(6, 3, 15, 15), torch.randint(0, 6, (6,))


OPEN = [{0: "batch"}, {0: "batch"}]

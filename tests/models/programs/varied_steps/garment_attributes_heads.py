"""Multi-task garment tagging: a shared trunk and one softmax head each for colour, pattern and sleeve, summed losses.

MISTAKE (silent): every head returns softmax probabilities and F.cross_entropy takes log_softmax of them once more; the heads should return logits.
"""
import torch
from torch import nn
import torch.nn.functional as F

TASKS = {"color": 8, "pattern": 5, "sleeve": 3}


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(48, 32), nn.Tanh())
        self.heads = nn.ModuleDict({k: nn.Linear(32, n) for k, n in TASKS.items()})

    def head_out(self, name, h):
        return self.heads[name](h).softmax(dim=-1)

    def forward(self, feats, color, pattern, sleeve):
        targets = {"color": color, "pattern": pattern, "sleeve": sleeve}
        h = self.trunk(feats)
        total = 0.0
        for name in TASKS:
            total = total + F.cross_entropy(self.head_out(name, h), targets[name])  # fault: probabilities-into-logit-loss
        return total / len(TASKS)


class Fixed(Step):
    def head_out(self, name, h):
        return self.heads[name](h)


def example():
    torch.manual_seed(37)
    return torch.randn(5, 48), torch.randint(0, 8, (5,)), torch.randint(0, 5, (5,)), torch.randint(0, 3, (5,))


OPEN = [{0: "b"}, {0: "b"}, {0: "b"}, {0: "b"}]

"""Siamese signature verification: pairs of signatures, same writer or not, with the cosine embedding loss.

MISTAKE (silent): the target of cosine_embedding_loss has to be 1 or -1 and is 1 or 0 here; pairs with 0 give no loss, so different writers are never pushed apart. Use 2 * same - 1.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(1, 8, 5, stride=2), nn.ReLU(),
            nn.Conv2d(8, 16, 5, stride=2), nn.ReLU(),
            nn.Flatten(), nn.Linear(16 * 3 * 5, 20))

    def pair_target(self, a, b):
        return (a == b).float()

    def forward(self, left, right, writer_left, writer_right):
        e1, e2 = self.branch(left), self.branch(right)
        y = self.pair_target(writer_left, writer_right)
        return F.cosine_embedding_loss(e1, e2, y, margin=0.3)  # fault: result-always-the-same


class Fixed(Step):
    def pair_target(self, a, b):
        return 2.0 * (a == b).float() - 1.0


def example():
    torch.manual_seed(73)
    return torch.randn(6, 1, 22, 30), torch.randn(6, 1, 22, 30), torch.tensor([1, 2, 3, 4, 5, 6]), torch.tensor([1, 2, 9, 4, 8, 7])

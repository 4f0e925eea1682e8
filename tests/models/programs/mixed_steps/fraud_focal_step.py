"""Fraud detection on transactions: embeddings, numeric features, binary focal loss.

MISTAKE (silent): the modulating factor is pt**gamma, which down-weights the hard examples; it should be (1 - pt)**gamma.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, gamma=2.0, alpha=0.75):
        super().__init__()
        self.gamma, self.alpha = gamma, alpha
        self.merchant = nn.Embedding(40, 6)
        self.country = nn.Embedding(12, 3)
        self.fc1, self.fc2 = nn.Linear(7 + 9, 24), nn.Linear(24, 1)

    def modulate(self, pt):
        return pt.pow(self.gamma)  # fault: one-sided-loss

    def forward(self, numeric, merchant, country, fraud):
        x = torch.cat([numeric.clamp(-5, 5), self.merchant(merchant), self.country(country)], 1)
        z = self.fc2(F.relu(self.fc1(x))).view(-1)
        ce = F.binary_cross_entropy_with_logits(z, fraud, reduction="none")
        pt = torch.exp(-ce)
        at = fraud * self.alpha + (1 - fraud) * (1 - self.alpha)
        return (at * self.modulate(pt) * ce).mean()  # fault: one-sided-loss


class Fixed(Step):
    def modulate(self, pt):
        return (1 - pt).pow(self.gamma)


def example():
    torch.manual_seed(23)
    return torch.randn(8, 7), torch.randint(0, 40, (8,)), torch.randint(0, 12, (8,)), torch.tensor([0., 0, 1, 0, 0, 0, 1, 0])

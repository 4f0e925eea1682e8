"""Multi-label classification of chest x-rays (14 findings) with class-wise positive weights.

MISTAKE (silent): the classifier already ends in a Sigmoid, yet its output goes into BCEWithLogitsLoss, which takes the sigmoid again; the classifier should give logits.
"""
import torch
import torch.nn as nn

N_FINDINGS = 14


class XrayNet(nn.Module):
    def __init__(self, last):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 5, stride=2), nn.ReLU(inplace=True),
            nn.Conv2d(12, 24, 3, stride=2), nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d(1),
        )
        self.classifier = nn.Sequential(nn.Flatten(), nn.Linear(24, N_FINDINGS), last)

    def forward(self, x):
        return self.classifier(self.features(x))


class Step(nn.Module):
    last = nn.Sigmoid

    def __init__(self):
        super().__init__()
        self.model = XrayNet(self.last())
        self.criterion = nn.BCEWithLogitsLoss(pos_weight=torch.linspace(1.0, 8.0, N_FINDINGS))

    def forward(self, image, findings):
        output = self.model(image)
        loss = self.criterion(output, findings)  # fault: probabilities-into-logit-loss
        return loss, output


class Fixed(Step):
    last = nn.Identity


def example():
    torch.manual_seed(3)
    return torch.randn(4, 1, 24, 24), (torch.rand(4, N_FINDINGS) < 0.2).float()


OPEN = [{0: "n"}, {0: "n"}]

"""FixMatch: the weak view gives pseudo labels, the strong view learns those of which the model is sure.

MISTAKE (silent): the 0.95 confidence threshold is applied to the largest raw logit, not to the largest probability; softmax over the classes is missing.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, num_classes=7):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 10, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(10 * 6 * 6, num_classes))
        self.threshold = 0.95
        self.lambda_u = 1.0

    def confidence(self, logits):
        return logits

    def forward(self, x_lab, y_lab, x_weak, x_strong):
        n = x_lab.shape[0]
        logits = self.net(torch.cat([x_lab, x_weak, x_strong], 0))
        out_l = logits[:n]
        out_w, out_s = logits[n:].chunk(2)
        sup = F.cross_entropy(out_l, y_lab)
        score, pseudo = self.confidence(out_w.detach()).max(dim=-1)
        mask = score.ge(self.threshold).float()  # fault: probability-threshold-on-scores
        unsup = (F.cross_entropy(out_s, pseudo, reduction="none") * mask).mean()
        return sup + self.lambda_u * unsup


class Fixed(Step):
    def confidence(self, logits):
        return torch.softmax(logits, dim=-1)


def example():
    torch.manual_seed(8)
    return 5 * torch.randn(3, 3, 12, 12), torch.randint(0, 7, (3,)), 5 * torch.randn(6, 3, 12, 12), 5 * torch.randn(6, 3, 12, 12)

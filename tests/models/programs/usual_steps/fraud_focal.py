"""Fraud focal.

MISTAKE (silent): prob is [N,1] while target is [N], p_t becomes [N,N].
"""
import torch
import torch.nn as nn
from dataclasses import dataclass


@dataclass
class Config:
    n_features: int = 29
    hidden: int = 64
    alpha: float = 0.25
    gamma: float = 2.0
    dropout: float = 0.1


def focal_loss(prob, target, alpha, gamma):
    prob = prob.clamp(1e-6, 1 - 1e-6)
    p_t = prob * target + (1 - prob) * (1 - target)  # fault: silent-broadcast-in-loss
    alpha_t = alpha * target + (1 - alpha) * (1 - target)
    return (-alpha_t * (1 - p_t) ** gamma * torch.log(p_t)).mean()


class Step(nn.Module):
    def __init__(self, cfg: Config = Config()):
        super().__init__()
        self.cfg = cfg
        self.mlp = nn.Sequential(
            nn.Linear(cfg.n_features, cfg.hidden),
            nn.ReLU(),
            nn.Dropout(cfg.dropout),
            nn.Linear(cfg.hidden, 1),
        )

    def forward(self, x, is_fraud):
        prob = torch.sigmoid(self.mlp(x))
        return focal_loss(prob, is_fraud.float(), self.cfg.alpha, self.cfg.gamma)  # fault: silent-broadcast-in-loss


def example():
    torch.manual_seed(0)
    return torch.randn(50, 29), (torch.rand(50) < 0.2).long()

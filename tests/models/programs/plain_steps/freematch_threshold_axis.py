import torch
import torch.nn.functional as F
from torch import nn


class FreeMatchStep(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 10))

    def forward(self, weak, strong):
        with torch.no_grad():
            probs = torch.softmax(self.model(weak), dim=-1)
            tau = probs.max(dim=0)[0].mean()  # fault: reduction-over-batch-axis
            conf, pseudo = probs.max(dim=-1)
            mask = (conf >= tau).float()
        loss_u = F.cross_entropy(self.model(strong), pseudo, reduction="none")
        return (loss_u * mask).mean()  # fault: reduction-over-batch-axis


def example():
    x = torch.randn(64, 16)
    return (x, x + 0.3 * torch.randn(64, 16))


Step = FreeMatchStep
OPEN = [{0: "batch"}, {0: "batch"}]

import torch
import torch.nn.functional as F
from torch import nn


class ContrastiveLoss(nn.Module):
    def __init__(self, margin=2.0):
        super().__init__()
        self.margin = margin

    def forward(self, output1, output2, label):
        euclidean_distance = F.pairwise_distance(output1, output2)  # fault: silent-broadcast-in-loss
        loss_contrastive = torch.mean(
            (1 - label) * torch.pow(euclidean_distance, 2)  # fault: silent-broadcast-in-loss
            + label * torch.pow(torch.clamp(self.margin - euclidean_distance, min=0.0), 2)
        )
        return loss_contrastive


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.cnn = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 5))
        self.criterion = ContrastiveLoss()

    def forward(self, img0, img1, label):
        return self.criterion(self.cnn(img0), self.cnn(img1), label)


def example():
    return (torch.randn(6, 1, 8, 8), torch.randn(6, 1, 8, 8), torch.tensor([[0.], [1.], [1.], [0.], [1.], [0.]]))


Step = Siamese

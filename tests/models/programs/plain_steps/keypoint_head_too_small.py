import torch
from torch import nn


class KeypointNet(nn.Module):
    def __init__(self, num_keypoints=4):
        super().__init__()
        self.num_keypoints = num_keypoints
        self.features = nn.Sequential(
            nn.Conv2d(1, 6, 3, stride=2), nn.ReLU(),
            nn.Conv2d(6, 12, 3, stride=2), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )
        self.head = nn.Linear(12, 1)  # fault: silent-broadcast-in-loss

    def forward(self, img, keypoints):
        pred = self.head(self.features(img))
        sq = (pred - keypoints.flatten(1)) ** 2  # fault: silent-broadcast-in-loss
        return sq.sum(dim=1).mean()


def example():
    return (torch.randn(4, 1, 20, 20), torch.rand(4, 4, 2))


Step = KeypointNet
OPEN = [{0: "batch"}, {0: "batch"}]

"""A flower classifier and its loss on a fixed validation batch; the label file counts the classes from 1."""
import torch
from torch import nn
from torch.nn import functional as F

CLASSES = 10
LABEL_FILE = "3 7 10 1 4 4 9 2"


def read_labels():
    return torch.tensor([int(word) for word in LABEL_FILE.split()])


class ClassifierStep(nn.Module):
    def __init__(self, labels):
        super().__init__()
        self.register_buffer("labels", labels)
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.head = nn.Linear(8 * 4 * 4, CLASSES)

    def forward(self, images):
        pooled = F.max_pool2d(F.relu(self.conv(images)), 2)
        logits = self.head(pooled.flatten(1))
        return F.cross_entropy(logits, self.labels)


def example():
    return {"images": torch.randn(8, 3, 8, 8)}

"""Multitask face attributes.

MISTAKE (silent): copy-paste: emotion loss uses the hair head's logits, emotion head gets no training.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class MultiHead(nn.Module):
    def __init__(self, feat=48):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(),
            nn.Conv2d(16, feat, 3, stride=2), nn.ReLU(),
        )
        self.hair_head = nn.Linear(feat, 6)
        self.emotion_head = nn.Linear(feat, 6)
        self.age_head = nn.Linear(feat, 1)

    def forward(self, x):
        f = self.backbone(x).mean(dim=(2, 3))
        return {
            "hair": self.hair_head(f),
            "emotion": self.emotion_head(f),
            "age": self.age_head(f).squeeze(-1),
        }


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = MultiHead()

    def forward(self, face, hair, emotion, age):
        out = self.net(face)
        loss_hair = F.cross_entropy(out["hair"], hair)
        loss_emotion = F.cross_entropy(out["hair"], emotion)  # fault: choice-never-trained
        loss_age = (out["age"] - age / 100.0).abs().mean()
        loss = loss_hair + loss_emotion + 2.0 * loss_age
        return loss, out["emotion"].argmax(dim=1)


def example():
    g = torch.Generator().manual_seed(10)
    return (torch.rand(5, 3, 18, 18, generator=g), torch.randint(0, 6, (5,), generator=g),
            torch.randint(0, 6, (5,), generator=g), torch.randint(1, 90, (5,), generator=g).float())

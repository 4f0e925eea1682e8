"""Semi-supervised X-ray classification with a mean teacher.

CORRECT: the consistency term is an MSE between softmax outputs (no cross entropy, so the softmax is wanted); the
teacher is the exponential average of the student and gets no gradient; cross entropy gets the logits.
"""
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F


class XrayNet(nn.Module):
    def __init__(self, n_class=3, ch=8):
        super().__init__()
        self.c1 = nn.Conv2d(1, ch, 3, stride=2, padding=1)
        self.n1 = nn.GroupNorm(2, ch)
        self.c2 = nn.Conv2d(ch, 2 * ch, 3, stride=2, padding=1)
        self.n2 = nn.GroupNorm(2, 2 * ch)
        self.fc = nn.Linear(2 * ch, n_class)

    def forward(self, x):
        x = F.relu(self.n1(self.c1(x)))
        x = F.relu(self.n2(self.c2(x)))
        return self.fc(x.mean((-2, -1)))


class Step(nn.Module):
    def __init__(self, decay=0.99, weight=5.0):
        super().__init__()
        self.student = XrayNet()
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)
        self.decay, self.weight = decay, weight

    def ema_weights(self):
        # the training loop copies them into the teacher after the update
        s = dict(self.student.named_parameters())
        return {k: self.decay * v + (1 - self.decay) * s[k].detach() for k, v in self.teacher.named_parameters()}

    def forward(self, labelled, label, unlabelled, noise):
        sup = F.cross_entropy(self.student(labelled), label)
        p = F.softmax(self.student(unlabelled + 0.1 * noise), dim=1)
        with torch.no_grad():
            q = F.softmax(torch.func.functional_call(self.teacher, self.ema_weights(), (unlabelled,)), dim=1)
        return sup + self.weight * F.mse_loss(p, q)


def example():
    g = torch.Generator().manual_seed(1)
    return (
        torch.rand(5, 1, 16, 16, generator=g),
        torch.randint(0, 3, (5,), generator=g),
        torch.rand(7, 1, 16, 16, generator=g),
        torch.randn(7, 1, 16, 16, generator=g),
    )

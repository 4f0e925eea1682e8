import torch
from torch import nn


class Stars(nn.Module):
    def __init__(self, vocab=70):
        super().__init__()
        self.bag = nn.Embedding(vocab, 16)
        self.out = nn.Linear(16, 5)

    def forward(self, review, stars):
        logits = self.out(self.bag(review).mean(1))
        rating = logits.argmax(dim=-1).float() + 1.0
        return torch.mean((rating - stars) ** 2)  # fault: loss-detached-from-parameters


def example():
    return (torch.randint(0, 70, (9, 12)), torch.randint(1, 6, (9,)).float())


Step = Stars

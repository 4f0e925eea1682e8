"""Trains a biased matrix factorisation of film ratings. The bias embeddings are (B, 1) and are added to the (B,) dot product, which broadcasts to (B, B); they should be squeezed first."""
import torch
from torch import nn


class Step(nn.Module):
    """One training step: inputs to a scalar loss."""

    def __init__(self, n_users=80, n_films=45, k=10):
        super().__init__()
        self.P = nn.Embedding(n_users, k)
        self.Q = nn.Embedding(n_films, k)
        self.user_bias = nn.Embedding(n_users, 1)
        self.film_bias = nn.Embedding(n_films, 1)
        self.mu = nn.Parameter(torch.tensor(3.5))

    def forward(self, user, film, rating):
        dot = (self.P(user) * self.Q(film)).sum(-1)
        pred = self.mu + dot + self.user_bias(user) + self.film_bias(film)  # fault: silent-broadcast-in-loss
        return torch.mean(torch.square(rating - pred))


def example():
    """A tuple of tensors, with realistic dtypes."""
    return (torch.randint(0, 80, (28,)), torch.randint(0, 45, (28,)), torch.randint(1, 6, (28,)).float())

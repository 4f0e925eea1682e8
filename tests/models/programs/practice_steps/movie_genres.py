"""Multi-label genre prediction from plot word counts and a poster embedding.

MISTAKE (silent): the model already applies a sigmoid and the loss is BCEWithLogitsLoss, which applies it a
second time; the raw scores should go into the loss.
"""
import torch
import torch.nn as nn


class GenreModel(nn.Module):
    def __init__(self, n_words=40, n_poster=16, n_genres=7):
        super().__init__()
        self.text = nn.Sequential(nn.Linear(n_words, 24), nn.ReLU())
        self.poster = nn.Sequential(nn.Linear(n_poster, 24), nn.ReLU())
        self.gate = nn.Linear(48, 24)
        self.out = nn.Linear(24, n_genres)
        self.sigmoid = nn.Sigmoid()

    def scores(self, bow, poster):
        t, p = self.text(bow), self.poster(poster)
        z = torch.sigmoid(self.gate(torch.cat((t, p), dim=-1)))
        return self.out(z * t + (1 - z) * p)

    def forward(self, bow, poster):
        return self.sigmoid(self.scores(bow, poster))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = GenreModel()
        self.loss_fn = nn.BCEWithLogitsLoss(pos_weight=torch.tensor([1.0, 3.0, 2.0, 5.0, 1.5, 4.0, 2.5]))

    def forward(self, bow, poster, genres):
        pred = self.model(bow, poster)
        return self.loss_fn(pred, genres)  # fault: probabilities-into-logit-loss


class Fixed(Step):
    def forward(self, bow, poster, genres):
        return self.loss_fn(self.model.scores(bow, poster), genres)


def example():
    g = torch.Generator().manual_seed(1)
    return (
        torch.log1p(torch.randint(0, 4, (5, 40), generator=g).float()),
        torch.randn(5, 16, generator=g),
        (torch.rand(5, 7, generator=g) > 0.7).float(),
    )


OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}]

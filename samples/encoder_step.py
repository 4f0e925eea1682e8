"""A small transformer encoder with two training steps: tags for every token, or one score for every sentence."""
import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY, TAGS, WIDTH, HEADS, LONGEST = 50, 7, 16, 2, 64


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.value = nn.Linear(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def split_heads(self, x):
        batch, length, _ = x.shape
        return x.view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2)

    def forward(self, x):
        batch, length, _ = x.shape
        query = self.split_heads(self.query(x))
        key = self.split_heads(self.key(x))
        value = self.split_heads(self.value(x))
        scores = query @ key.transpose(2, 3) / (WIDTH // HEADS) ** 0.5
        mixed = F.softmax(scores, dim=-1) @ value
        return self.out(mixed.transpose(1, 2).reshape(batch, length, -1))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()
        self.attention_norm = nn.LayerNorm(WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))
        self.feed_norm = nn.LayerNorm(WIDTH)

    def forward(self, x):
        x = self.attention_norm(x + self.attention(x))
        return self.feed_norm(x + self.feed(x))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Embedding(LONGEST, WIDTH)
        self.layers = nn.ModuleList([Layer(), Layer()])

    def forward(self, tokens):
        place = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.places(place)
        for layer in self.layers:
            x = layer(x)
        return x


class TaggerStep(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.head = nn.Linear(WIDTH, TAGS)

    def forward(self, tokens, tags):
        logits = self.head(self.encoder(tokens))
        return F.cross_entropy(logits.transpose(1, 2), tags)


class ScoreStep(nn.Module):
    """Scores of shape [batch, 1] against targets of shape [batch]."""

    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, tokens, target):
        score = self.head(self.encoder(tokens).mean(dim=1))
        return ((score - target) ** 2).mean()


class RepairedScoreStep(ScoreStep):
    def forward(self, tokens, target):
        score = self.head(self.encoder(tokens).mean(dim=1)).squeeze(1)
        return ((score - target) ** 2).mean()


def tagger_example():
    return {"tokens": torch.randint(0, VOCABULARY, (3, 10)), "tags": torch.randint(0, TAGS, (3, 10))}


def score_example():
    return {"tokens": torch.randint(0, VOCABULARY, (3, 10)), "target": torch.rand(3)}

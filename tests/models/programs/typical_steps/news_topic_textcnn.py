"""Kim-style text CNN for news topics.

MISTAKE (silent): the network ends in a softmax and its output goes to cross_entropy, which wants logits; drop the softmax.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class TextCNN(nn.Module):
    def __init__(self, vocab=120, dim=16, channels=12, kernels=(2, 3, 4)):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.convs = nn.ModuleList([nn.Conv1d(dim, channels, k) for k in kernels])
        self.fc = nn.Linear(channels * len(kernels), 4)

    def forward(self, tokens):
        e = self.embed(tokens).transpose(1, 2)
        pooled = [F.relu(conv(e)).amax(dim=2) for conv in self.convs]
        return self.fc(torch.cat(pooled, dim=1))


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = TextCNN()

    def forward(self, tokens, topic):
        logits = self.model(tokens)
        probs = F.softmax(logits, dim=1)
        return F.cross_entropy(probs, topic)  # fault: probabilities-into-logit-loss


class Fixed(Step):
    def forward(self, tokens, topic):
        logits = self.model(tokens)
        return F.cross_entropy(logits, topic)


def example():
    g = torch.Generator().manual_seed(1)
    tokens = torch.randint(0, 120, (7, 18), generator=g)
    topic = torch.randint(0, 4, (7,), generator=g)
    return (tokens, topic)


OPEN = [{0: "batch"}, {0: "batch"}]

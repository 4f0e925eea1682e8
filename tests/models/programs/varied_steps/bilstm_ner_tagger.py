"""Named-entity tagger: embeddings, one BiLSTM layer, linear layer to tag scores; sentences are [batch, words].

MISTAKE (silent): nn.LSTM is built without batch_first=True but is given [batch, words, dim], so it recurs over the batch; build it with batch_first=True.
"""
import torch
from torch import nn


class Step(nn.Module):
    BATCH_FIRST = False

    def __init__(self, vocab=120, emb=16, hid=12, tags=9):
        super().__init__()
        self.emb = nn.Embedding(vocab, emb, padding_idx=0)
        self.lstm = nn.LSTM(emb, hid, bidirectional=True, batch_first=self.BATCH_FIRST)
        self.fc = nn.Linear(2 * hid, tags)
        self.crit = nn.CrossEntropyLoss(ignore_index=-100)

    def forward(self, words, tags):
        e = self.emb(words)
        h, _ = self.lstm(e)  # fault: no-rule
        scores = self.fc(h)
        return self.crit(scores.flatten(0, 1), tags.flatten())


class Fixed(Step):
    BATCH_FIRST = True


def example():
    torch.manual_seed(11)
    w = torch.randint(1, 120, (5, 8))
    t = torch.randint(0, 9, (5, 8))
    w[1, 5:] = 0
    t[1, 5:] = -100
    return w, t

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, vocab=80, tags=9):
        super().__init__()
        self.tags = tags
        self.emb = nn.Embedding(vocab, 16)
        self.lstm = nn.LSTM(16, 12, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(24, tags)
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, words, tag_ids):
        out, _ = self.lstm(self.emb(words))
        scores = self.fc(out)
        # CrossEntropyLoss wants (batch, classes, seq)
        scores = scores.view(scores.size(0), self.tags, -1)  # fault: class-axis-position
        return self.criterion(scores, tag_ids)


def example():
    return (torch.randint(0, 80, (4, 13)), torch.randint(0, 9, (4, 13)))


Step = Tagger
OPEN = [{0: "batch"}, {0: "batch"}]

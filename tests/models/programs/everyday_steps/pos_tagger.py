"""Pos tagger.

MISTAKE (silent): divides by all positions incl. padding, must be / mask.sum().
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Tagger(nn.Module):
    def __init__(self, vocab=3000, dim=50, hidden=40, n_tags=17):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, n_tags)

    def forward(self, words):
        h, _ = self.lstm(self.emb(words))
        return self.out(h)


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.tagger = Tagger()

    def forward(self, words, tags):
        logits = self.tagger(words)
        mask = words.ne(0).float()
        logp = F.log_softmax(logits, dim=-1)
        nll = -logp.gather(-1, tags.unsqueeze(-1)).squeeze(-1)
        loss = (nll * mask).mean()  # fault: mean-over-padding
        hits = (logits.argmax(-1) == tags).float() * mask
        return loss, hits.sum() / mask.sum()


def example():
    torch.manual_seed(0)
    words = torch.randint(1, 3000, (10, 25))
    words[torch.arange(25)[None] >= torch.randint(5, 26, (10, 1))] = 0
    return words, torch.randint(0, 17, (10, 25))

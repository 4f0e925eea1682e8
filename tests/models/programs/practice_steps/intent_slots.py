"""Voice assistant: joint intent classification and slot filling on padded utterances.

MISTAKE (silent): the masked slot losses are averaged over all positions, padding included, so the slot term
shrinks against the intent term with the amount of padding; it has to be divided by the number of real words.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class JointTagger(nn.Module):
    def __init__(self, vocab=80, emb=16, hidden=14, n_slots=9, n_intents=6, pad_id=0):
        super().__init__()
        self.emb = nn.Embedding(vocab, emb, padding_idx=pad_id)
        self.lstm = nn.LSTM(emb, hidden, batch_first=True, bidirectional=True)
        self.slot_head = nn.Linear(2 * hidden, n_slots)
        self.intent_head = nn.Linear(2 * hidden, n_intents)

    def forward(self, tokens, mask):
        h, _ = self.lstm(self.emb(tokens))
        pooled = h.masked_fill(mask.unsqueeze(-1) == 0, -1e4).amax(dim=1)
        return self.slot_head(h), self.intent_head(pooled)


class Step(nn.Module):
    pad_id = 0

    def __init__(self):
        super().__init__()
        self.tagger = JointTagger(pad_id=self.pad_id)

    def forward(self, tokens, slots, intent):
        mask = (tokens != self.pad_id).float()
        slot_logits, intent_logits = self.tagger(tokens, mask)
        slot_loss = F.cross_entropy(slot_logits.transpose(1, 2), slots, reduction="none")
        slot_loss = (slot_loss * mask).mean()  # fault: mean-over-padding
        return F.cross_entropy(intent_logits, intent) + slot_loss


class Fixed(Step):
    def forward(self, tokens, slots, intent):
        mask = (tokens != self.pad_id).float()
        slot_logits, intent_logits = self.tagger(tokens, mask)
        slot_loss = F.cross_entropy(slot_logits.transpose(1, 2), slots, reduction="none")
        slot_loss = (slot_loss * mask).sum() / mask.sum().clamp(min=1.0)
        return F.cross_entropy(intent_logits, intent) + slot_loss


def example():
    g = torch.Generator().manual_seed(1)
    tokens = torch.randint(1, 80, (5, 11), generator=g)
    for i, n in enumerate([11, 7, 4, 9, 2]):
        tokens[i, n:] = 0
    return tokens, torch.randint(0, 9, (5, 11), generator=g), torch.randint(0, 6, (5,), generator=g)

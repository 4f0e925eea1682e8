import torch
from torch import nn


class MaskedLM(nn.Module):
    def __init__(self, vocab=40, d=12, mask_id=3):
        super().__init__()
        self.mask_id = mask_id
        self.emb = nn.Embedding(vocab, d)
        self.mix = nn.Linear(d, d)
        self.decoder = nn.Linear(d, vocab)

    def forward(self, ids, chosen):
        labels = torch.where(chosen, ids, torch.full_like(ids, -100))
        inputs = torch.where(chosen, torch.full_like(ids, self.mask_id), ids)
        h = torch.tanh(self.mix(self.emb(inputs)))
        logp = self.decoder(h + h.mean(1, keepdim=True)).log_softmax(-1)
        tok = -logp.gather(2, labels.unsqueeze(2)).squeeze(2)  # fault: index-out-of-range
        keep = (labels != -100).float()
        return (tok * keep).sum() / keep.sum().clamp(min=1)


def example():
    return (torch.randint(0, 40, (3, 6)), torch.ones(3, 6, dtype=torch.bool))


Step = MaskedLM

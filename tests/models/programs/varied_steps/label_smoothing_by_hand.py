"""Translation decoder head with label smoothing written by hand and padding left out.

CORRECT: (1 - eps) * nll + eps * mean over the classes of -log p equals PyTorch's label_smoothing; the negative token ids never occur, padding (0)
is masked after an ordinary gather, which is safe as 0 is a valid index.
"""
import torch
from torch import nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self, vocab=60, d=20, eps=0.1):
        super().__init__()
        self.emb = nn.Embedding(vocab, d, padding_idx=0)
        self.dec = nn.GRU(d, d, batch_first=True)
        self.eps = eps

    def forward(self, memory, tgt):
        out, _ = self.dec(self.emb(tgt[:, :-1]), memory.unsqueeze(0))
        logp = F.log_softmax(F.linear(out, self.emb.weight), dim=2)
        gold = tgt[:, 1:]
        nll = -logp.gather(2, gold.unsqueeze(2)).squeeze(2)
        smooth = -logp.mean(2)
        loss = (1.0 - self.eps) * nll + self.eps * smooth
        keep = gold.ne(0)
        return loss.masked_fill(~keep, 0.0).sum() / keep.sum().clamp(min=1)


def example():
    torch.manual_seed(103)
    tgt = torch.randint(1, 60, (4, 8))
    tgt[1, 5:] = 0
    tgt[3, 6:] = 0
    return torch.randn(4, 20), tgt


OPEN = [{0: "batch"}, {0: "batch"}]

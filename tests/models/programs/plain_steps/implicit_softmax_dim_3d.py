import torch
import torch.nn.functional as F
from torch import nn


class Decoder(nn.Module):
    def __init__(self, vocab=30, hidden=20):
        super().__init__()
        self.embedding = nn.Embedding(vocab, hidden)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, tgt_in, tgt_out):
        output, _ = self.gru(F.relu(self.embedding(tgt_in)))
        output = F.log_softmax(self.out(output))  # fault: softmax-over-batch-axis
        return F.nll_loss(output.reshape(-1, output.size(2)), tgt_out.reshape(-1))


def example():
    return (torch.randint(0, 30, (6, 8)), torch.randint(0, 30, (6, 8)))


Step = Decoder

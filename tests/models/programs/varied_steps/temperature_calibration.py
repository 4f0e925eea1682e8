"""Post-hoc calibration: one temperature is fitted on the validation logits of a frozen classifier.

MISTAKE (silent): the log-probabilities are divided by T after log_softmax, so they are no longer normalised and a large T brings the loss to 0; the logits should be divided first.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_t = nn.Parameter(torch.full((1,), 0.4))

    def forward(self, val_logits, val_labels):
        logp = F.log_softmax(val_logits, dim=1) / self.log_t.exp()  # fault: temperature-after-softmax
        return F.nll_loss(logp, val_labels)


class Fixed(Step):
    def forward(self, val_logits, val_labels):
        logp = F.log_softmax(val_logits / self.log_t.exp(), dim=1)
        return F.nll_loss(logp, val_labels)


def example():
    torch.manual_seed(19)
    return 4 * torch.randn(8, 5), torch.randint(0, 5, (8,))


OPEN = [{0: "batch"}, {0: "batch"}]

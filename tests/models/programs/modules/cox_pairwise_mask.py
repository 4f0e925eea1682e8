"""Cox partial likelihood with an explicit risk-set matrix (N, N): broadcasting (N,1) against (1,N) is the
point; the -1e9 constant is in float32 and each row has at least the patient itself."""
import torch
from torch import nn

OPEN = [{0: "patients"}, {0: "patients"}, {0: "patients"}]


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(6, 1, bias=False)

    def forward(self, x, t, e):
        eta = self.net(x)[:, 0]
        at_risk = t[None, :] >= t[:, None]
        table = torch.where(at_risk, eta[None, :], torch.tensor(-1e9))
        ll = eta - table.logsumexp(dim=1)
        return -(ll * e).sum() / (e.sum() + 1e-6)


def example():
    torch.manual_seed(63)
    return torch.randn(8, 6), torch.rand(8) * 3, (torch.rand(8) > 0.3).float()

"""Double DQN: online picks, target evaluates; (B,1) columns are squeezed, terminal states do not bootstrap,
importance weights (B,) multiply per-sample errors (B,); new priorities are returned."""
import torch
from torch import nn

OPEN = [{0: "b"}, {0: "b"}, {0: "b"}, {0: "b"}, {0: "b"}, {0: "b"}]


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Sequential(nn.Linear(5, 20), nn.ReLU(), nn.Linear(20, 3))
        self.qt = nn.Sequential(nn.Linear(5, 20), nn.ReLU(), nn.Linear(20, 3)).requires_grad_(False)

    def forward(self, s, a, r, s2, done, w):
        q = self.q(s).gather(-1, a.unsqueeze(-1)).squeeze(-1)
        with torch.no_grad():
            a2 = self.q(s2).argmax(-1, keepdim=True)
            y = r + 0.97 * torch.logical_not(done) * self.qt(s2).gather(-1, a2).squeeze(-1)
        err = torch.where((q - y).abs() < 1, 0.5 * (q - y) ** 2, (q - y).abs() - 0.5)
        return (w * err).mean(), (q - y).abs().detach() + 1e-5


def example():
    torch.manual_seed(61)
    return (torch.randn(6, 5), torch.randint(0, 3, (6,)), torch.randn(6), torch.randn(6, 5),
            torch.rand(6) > 0.5, torch.rand(6))

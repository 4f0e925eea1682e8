import torch
import torch.nn.functional as F
from torch import nn


class HalfAttn(nn.Module):
    def __init__(self, d=12):
        super().__init__()
        self.q, self.kv, self.c = nn.Linear(d, d), nn.Linear(d, 2 * d), nn.Linear(d, 3)

    def forward(self, x, mask, y):
        k, v = self.kv(x).chunk(2, -1)
        s = (self.q(x) @ k.transpose(1, 2) * 0.288).half()
        s = s.masked_fill(~mask[:, None, :], torch.finfo(torch.float16).min)
        h = s.float().softmax(-1) @ v
        m = mask.unsqueeze(-1).float()
        return F.cross_entropy(self.c((h * m).sum(1) / m.sum(1).clamp(min=1)), y)


def example():
    return (torch.randn(4, 6, 12), torch.arange(6).expand(4, 6) < torch.tensor([[6], [3], [4], [1]]), torch.randint(0, 3, (4,)))


Step = HalfAttn

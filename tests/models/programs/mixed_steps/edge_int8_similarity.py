"""On-device face lookup: int8 embeddings against an int8 gallery, margin to the wanted identity.

MISTAKE (silent): the products are taken in int8 and wrap past 127 before the sum; widen to int32 first.
"""
import torch
from torch import nn

EVAL = True


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(30, 16)
        self.register_buffer("gallery", torch.randint(-120, 121, (9, 16), dtype=torch.int8))

    def dot(self, q):
        prod = q[:, None, :] * self.gallery[None]  # fault: byte-arithmetic-wraps
        return prod.to(torch.int32).sum(-1)

    def forward(self, feature, who):
        v = torch.tanh(self.proj(feature))
        q = torch.round(v * 127.0).clamp(-127, 127).to(torch.int8)
        score = self.dot(q).float() / (127.0 * 127.0)  # fault: byte-arithmetic-wraps
        own = score.gather(1, who[:, None])
        other = score.scatter(1, who[:, None], -1e4).amax(1, keepdim=True)
        return (0.2 + other - own).clamp(min=0).mean()


class Fixed(Step):
    def dot(self, q):
        return (q.to(torch.int32)[:, None, :] * self.gallery.to(torch.int32)[None]).sum(-1)


def example():
    torch.manual_seed(81)
    return torch.randn(5, 30), torch.randint(0, 9, (5,))


OPEN = [{0: "faces"}, {0: "faces"}]

import torch
from torch import nn


class HalfEntropy(nn.Module):
    """entropy bonus computed in half precision to save memory"""

    def __init__(self, a=5):
        super().__init__()
        self.pi = nn.Linear(7, a)

    def forward(self, s, a_onehot, adv):
        p = torch.softmax(self.pi(s), dim=-1).to(torch.float16)
        logp = torch.log(p + 1e-8)  # fault: invalid-domain
        ent = -(p * logp).sum(-1).float()
        pg = -((logp.float() * a_onehot).sum(-1) * adv)
        return (pg - 0.01 * ent).mean()


def example():
    return (torch.randn(9, 7), torch.eye(5)[torch.randint(0, 5, (9,))], torch.randn(9))


Step = HalfEntropy

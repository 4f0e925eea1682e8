import torch
from torch import nn


class Reinforce(nn.Module):
    def __init__(self, obs=6, acts=3, hid=20):
        super().__init__()
        self.rnn = nn.GRU(obs, hid, batch_first=True)
        self.head = nn.Linear(hid, acts)

    def forward(self, obs, actions, rewards):
        # obs [B, T, obs], actions [B, T], rewards [B, T]
        rtg = torch.flip(torch.cumsum(torch.flip(rewards, dims=[1]), dim=0), dims=[1])  # fault: reduction-over-batch-axis
        out, _ = self.rnn(obs)
        logp = self.head(out).log_softmax(-1)
        logp = logp.gather(-1, actions.unsqueeze(-1)).squeeze(-1)
        return -(logp * rtg).sum(1).mean()  # fault: reduction-over-batch-axis


def example():
    return (torch.randn(4, 11, 6), torch.randint(0, 3, (4, 11)), torch.rand(4, 11))


Step = Reinforce

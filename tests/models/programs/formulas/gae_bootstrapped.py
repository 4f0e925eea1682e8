"""GAE with a reverse loop and bootstrap value; negative loss values are normal here."""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.pi = nn.Linear(5, 3)
        self.v = nn.Linear(5, 1)

    def forward(self, obs, act, rew, done):
        val = self.v(obs).squeeze(-1)
        T = 6
        adv, run = [], torch.zeros_like(rew[:, 0])
        vd = val.detach()
        for t in range(T - 1, -1, -1):
            live = 1.0 - done[:, t]
            delta = rew[:, t] + 0.99 * vd[:, t + 1] * live - vd[:, t]
            run = delta + 0.99 * 0.95 * live * run
            adv.insert(0, run)
        adv = torch.stack(adv, 1)
        ret = adv + vd[:, :T]
        lp = torch.log_softmax(self.pi(obs[:, :T]), -1).gather(2, act[..., None])[..., 0]
        ent = torch.distributions.Categorical(logits=self.pi(obs[:, :T]), validate_args=False).entropy()
        return -(lp * adv).mean() + 0.5 * (ret - val[:, :T]).pow(2).mean() - 0.01 * ent.mean()


def example():
    torch.manual_seed(59)
    return torch.randn(2, 7, 5), torch.randint(0, 3, (2, 6)), torch.randn(2, 6), (torch.rand(2, 6) > .8).float()

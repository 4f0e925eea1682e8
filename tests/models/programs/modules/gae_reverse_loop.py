"""A2C with generalised advantage estimation, time-major (T, N).  The loop runs backward, a done cuts the
recursion, the bootstrap value has shape (N,); advantages are detached in the policy term and whitened over
the whole rollout on purpose."""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 16)
        self.pi, self.v = nn.Linear(16, 3), nn.Linear(16, 1)

    def forward(self, obs, act, rew, done, last_obs):
        h = torch.tanh(self.body(obs))
        v = self.v(h).squeeze(-1)
        with torch.no_grad():
            nxt = self.v(torch.tanh(self.body(last_obs))).squeeze(-1)
            adv, run = [], torch.zeros_like(nxt)
            for t in reversed(range(rew.shape[0])):
                live = 1.0 - done[t]
                delta = rew[t] + 0.99 * nxt * live - v[t]
                run = delta + 0.99 * 0.95 * live * run
                adv.insert(0, run)
                nxt = v[t]
            adv = torch.stack(adv)
        ret = adv + v.detach()
        logp = self.pi(h).log_softmax(-1)
        ent = -(logp.exp() * logp).sum(-1).mean()
        white = (adv - adv.mean()) / (adv.std() + 1e-6)
        pg = -(white * logp.gather(-1, act.unsqueeze(-1)).squeeze(-1)).mean()
        return pg + 0.5 * (v - ret).pow(2).mean() - 0.01 * ent


def example():
    torch.manual_seed(72)
    return (torch.randn(6, 3, 4), torch.randint(0, 3, (6, 3)), torch.randn(6, 3),
            (torch.rand(6, 3) > 0.8).float(), torch.randn(3, 4))

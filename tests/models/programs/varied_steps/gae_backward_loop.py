"""PPO value and advantage step: generalised advantage estimation by a backward loop over the rollout, then value regression and policy gradient.

CORRECT: the loop fills a list from the end and reverses it; done[t] cuts both the bootstrap and the running sum; rollouts are [T, N], so dim 0 is time.
"""
import torch
from torch import nn


class Step(nn.Module):
    def __init__(self, obs=5, acts=3, gamma=0.99, lam=0.95):
        super().__init__()
        self.v = nn.Sequential(nn.Linear(obs, 16), nn.Tanh(), nn.Linear(16, 1))
        self.pi = nn.Sequential(nn.Linear(obs, 16), nn.Tanh(), nn.Linear(16, acts))
        self.gamma, self.lam = gamma, lam

    def forward(self, obs, last_obs, act, rew, done):
        values = self.v(obs).squeeze(-1)             # [T, N]
        with torch.no_grad():
            nxt = torch.cat([values[1:], self.v(last_obs).squeeze(-1)[None]], dim=0)
            adv, run = [], torch.zeros_like(rew[0])
            for t in reversed(range(rew.shape[0])):
                delta = rew[t] + self.gamma * nxt[t] * (1.0 - done[t]) - values[t]
                run = delta + self.gamma * self.lam * (1.0 - done[t]) * run
                adv.append(run)
            adv = torch.stack(adv[::-1])
            ret = adv + values
        logp = self.pi(obs).log_softmax(-1).gather(-1, act[..., None])[..., 0]
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        return 0.5 * (values - ret).pow(2).mean() - (logp * adv).mean()


def example():
    torch.manual_seed(101)
    T, N = 7, 3
    return torch.randn(T, N, 5), torch.randn(N, 5), torch.randint(0, 3, (T, N)), torch.randn(T, N), (torch.rand(T, N) < 0.2).float()

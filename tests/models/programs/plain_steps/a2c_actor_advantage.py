import torch
import torch.nn.functional as F
from torch import nn


class ActorCritic(nn.Module):
    def __init__(self, obs=8, n_act=4):
        super().__init__()
        self.shared = nn.Linear(obs, 64)
        self.pi = nn.Linear(64, n_act)
        self.vf = nn.Linear(64, 1)

    def forward(self, obs, act, ret):
        # obs [N, obs], act [N], ret [N, 1]
        z = torch.tanh(self.shared(obs))
        logp = F.log_softmax(self.pi(z), dim=-1)
        logp_a = logp.gather(1, act.unsqueeze(1)).squeeze(1)
        value = self.vf(z)
        adv = (ret - value).detach()  # fault: silent-broadcast-in-loss
        pg_loss = -(logp_a * adv).mean()  # fault: silent-broadcast-in-loss
        v_loss = F.mse_loss(value, ret)
        return pg_loss + 0.5 * v_loss


def example():
    return (torch.randn(12, 8), torch.randint(0, 4, (12,)), torch.randn(12, 1))


Step = ActorCritic

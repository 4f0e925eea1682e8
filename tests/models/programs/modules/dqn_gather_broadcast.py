"""Deep Q-learning step.

q.gather keeps the action axis (B, 1); the bootstrapped target is (B,).  The Huber loss is
then taken over a (B, B) table, every Q value is pulled to the mean of all targets.
Fix: squeeze the gathered column.
"""
import torch
from torch import nn

OPEN = [{0: "batch"}, {0: "batch"}, {0: "batch"}, {0: "batch"}, {0: "batch"}]


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 32), nn.ReLU(), nn.Linear(32, o))


class Step(nn.Module):
    gamma = 0.99

    def __init__(self):
        super().__init__()
        self.online, self.target = mlp(8, 4), mlp(8, 4)
        self.target.requires_grad_(False)

    def td(self, q, y):
        diff = q - y  # wrong: (B,1) minus (B,) gives (B,B)
        return torch.where(diff.abs() < 1.0, 0.5 * diff * diff, diff.abs() - 0.5).mean()

    def forward(self, state, action, reward, next_state, done):
        q = self.online(state).gather(1, action.unsqueeze(1))
        with torch.no_grad():
            best = self.target(next_state).amax(dim=1)
            y = reward + self.gamma * (1.0 - done) * best
        return self.td(q, y)  # fault: silent-broadcast-in-loss


class Fixed(Step):
    def td(self, q, y):
        return super().td(q.squeeze(1), y)


def example():
    g = torch.Generator().manual_seed(2)
    return (torch.randn(7, 8, generator=g), torch.randint(0, 4, (7,), generator=g),
            torch.randn(7, generator=g), torch.randn(7, 8, generator=g),
            torch.randint(0, 2, (7,), generator=g).float())

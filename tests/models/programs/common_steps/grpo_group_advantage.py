"""Grpo group advantage.

MISTAKE (silent): operator precedence in advantage normalisation: r - mean/(std+eps).
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class PolicyLM(nn.Module):
    def __init__(self, vocab=70, d=24):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.rnn = nn.GRU(d, d, batch_first=True)
        self.head = nn.Linear(d, vocab)

    def forward(self, ids):
        return self.head(self.rnn(self.emb(ids))[0])


class Step(nn.Module):
    """Group-relative policy optimisation, G completions for every prompt."""

    def __init__(self, group=4, clip=0.2):
        super().__init__()
        self.policy = PolicyLM()
        self.group = group
        self.clip = clip

    def advantages(self, rewards):
        r = rewards.view(-1, self.group)
        mean = r.mean(dim=1, keepdim=True)
        std = r.std(dim=1, keepdim=True)
        adv = r - mean / (std + 1e-4)  # fault: divided-before-subtracted
        return adv.reshape(-1)

    def forward(self, completions, completion_mask, old_logps, rewards):
        logits = self.policy(completions[:, :-1])
        logps = F.log_softmax(logits, -1).gather(-1, completions[:, 1:, None]).squeeze(-1)
        ratio = torch.exp(logps - old_logps)
        adv = self.advantages(rewards).unsqueeze(1)  # fault: divided-before-subtracted
        surrogate = torch.min(ratio * adv, ratio.clamp(1 - self.clip, 1 + self.clip) * adv)
        return -(surrogate * completion_mask).sum() / completion_mask.sum()


def example():
    g = torch.Generator().manual_seed(26)
    n, t = 8, 9
    lens = torch.tensor([8, 5, 8, 6, 3, 7, 8, 4])
    mask = (torch.arange(t - 1)[None] < lens[:, None]).float()
    return (torch.randint(0, 70, (n, t), generator=g), mask,
            -4.2 + 0.1 * torch.randn(n, t - 1, generator=g), torch.rand(n, generator=g))

"""Rlhf tokens.

CORRECT: k3 estimator of KL(policy || ref), not a sign error.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class LM(nn.Module):
    def __init__(self, vocab=300, dim=48):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        return self.head(self.rnn(self.emb(ids))[0])


class Step(nn.Module):
    """GRPO: rewards [prompts, group], responses flattened to [prompts * group, T]."""

    def __init__(self, beta=0.04, clip=0.2, group=8):
        super().__init__()
        self.policy, self.ref = LM(), LM()
        self.beta, self.clip, self.group = beta, clip, group

    def forward(self, ids, old_lp, resp_mask, rewards):
        tgt = ids[:, 1:].unsqueeze(-1)
        lp = F.log_softmax(self.policy(ids[:, :-1]), -1).gather(-1, tgt).squeeze(-1)
        with torch.no_grad():
            ref_lp = F.log_softmax(self.ref(ids[:, :-1]), -1).gather(-1, tgt).squeeze(-1)
        adv = (rewards - rewards.mean(dim=1, keepdim=True)) / (rewards.std(dim=1, keepdim=True) + 1e-4)
        adv = adv.reshape(-1, 1)
        ratio = (lp - old_lp).exp()
        obj = torch.min(ratio * adv, ratio.clamp(1 - self.clip, 1 + self.clip) * adv)
        kl = torch.exp(ref_lp - lp) - (ref_lp - lp) - 1
        tok = -(obj - self.beta * kl)
        per_seq = (tok * resp_mask).sum(1) / resp_mask.sum(1)
        return per_seq.mean()


def example():
    torch.manual_seed(0)
    n, t = 24, 18
    m = ((torch.arange(t)[None] >= 5) & (torch.arange(t)[None] < torch.randint(9, t + 1, (n, 1)))).float()
    return torch.randint(0, 300, (n, t + 1)), -5.5 - 0.4 * torch.rand(n, t), m, torch.rand(3, 8)

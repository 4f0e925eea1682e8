"""Character level GPT, one block.

MISTAKE (silent): targets are not shifted, each position predicts its own input token.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.n_head = n_head
        self.register_buffer("bias", torch.tril(torch.ones(block_size, block_size)).view(1, 1, block_size, block_size))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(C, dim=2)
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (q, k, v))
        att = (q @ k.transpose(-2, -1)) * (k.size(-1) ** -0.5)
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class Step(nn.Module):
    def __init__(self, vocab=40, n_embd=32, block_size=16):
        super().__init__()
        self.wte = nn.Embedding(vocab, n_embd)
        self.wpe = nn.Embedding(block_size, n_embd)
        self.ln_1, self.ln_2, self.ln_f = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attn = CausalSelfAttention(n_embd, 4, block_size)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 64), nn.GELU(), nn.Linear(64, n_embd))
        self.lm_head = nn.Linear(n_embd, vocab, bias=False)

    def forward(self, input_ids):
        T = input_ids.size(1)
        x = self.wte(input_ids) + self.wpe(torch.arange(T))
        x = x + self.attn(self.ln_1(x))
        x = x + self.mlp(self.ln_2(x))
        logits = self.lm_head(self.ln_f(x))
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), input_ids.view(-1))  # fault: target-in-prediction
        return loss


def example():
    g = torch.Generator().manual_seed(7)
    return (torch.randint(0, 40, (4, 12), generator=g),)

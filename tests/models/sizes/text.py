"""Text: positions, masks, attention, states that go from step to step."""
import math

import torch
from architecture import Buffer, ids, linear, model, randn
from torch import nn
from torch.nn import functional as F


@model({"tokens": "batch sequence"}, "sequence", tokens=ids(20, 3, 12), words=nn.Embedding(20, 8), places=nn.Embedding(32, 8), rows=Buffer(torch.arange(12)[None]),
       norm=nn.LayerNorm(8))
def bert_embeddings(self, tokens):
    rows = torch.arange(tokens.shape[1])[None] if self.free else self.rows
    return self.norm(self.words(tokens) + self.places(rows))


@model({"tokens": "batch sequence"}, "sequence", tokens=ids(20, 3, 10), words=nn.Embedding(20, 6), table=Buffer(torch.randn(1, 24, 6)), head=linear(6, 20))
def sinusoid_table(self, tokens):
    hidden = self.words(tokens) * math.sqrt(6)
    length = tokens.shape[1] if self.free else 10
    return self.head(hidden + self.table[:, :length])


@model({"x": "batch sequence ."}, "sequence", x=randn(3, 9, 8), qkv=linear(8, 24), out=linear(8, 8), mask=Buffer(torch.tril(torch.ones(1, 1, 9, 9))),
       longer=Buffer(torch.tril(torch.ones(1, 1, 20, 20))))
def gpt_causal(self, x):
    b, t = x.shape[0], x.shape[1]
    q, k, v = self.qkv(x).view(b, t, 3, 2, 4).permute(2, 0, 3, 1, 4)
    mask = self.longer[:, :, :t, :t] if self.free else self.mask
    scores = (q @ k.transpose(-2, -1) / 2.0).masked_fill(mask == 0, float("-inf"))
    return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, 8)) + x


@model({"x": "batch sequence ."}, "batch", x=randn(5, 7, 8), q=linear(8, 8), k=linear(8, 8), v=linear(8, 8), norm=nn.LayerNorm(8))
def heads_with_batch(self, x):
    b = x.shape[0] if self.free else 5

    def split(y):
        return y.view(b, -1, 2, 4).transpose(1, 2)

    q, k, v = split(self.q(x)), split(self.k(x)), split(self.v(x))
    mixed = torch.softmax(q @ k.transpose(2, 3) * 0.5, -1) @ v
    return self.norm(x + mixed.transpose(1, 2).reshape(b, -1, 8))


@model({"tokens": "batch sequence"}, "batch", tokens=ids(20, 4, 6), words=nn.Embedding(20, 5), lstm=nn.LSTM(5, 7, batch_first=True), head=linear(7, 3))
def lstm_state(self, tokens):
    rows = tokens.shape[0] if self.free else 4
    state = (torch.zeros(1, rows, 7), torch.zeros(1, rows, 7))
    out, _ = self.lstm(self.words(tokens), state)
    return self.head(out[:, -1])


@model({"x": "sequence batch ."}, "batch", x=randn(6, 5, 4), gru=nn.GRU(4, 3, bidirectional=True), start=Buffer(torch.randn(2, 5, 3)))
def gru_learned_state(self, x):
    start = self.start[:, :1].expand(2, x.shape[1], 3).contiguous() if self.free else self.start
    return self.gru(x, start)[0]


@model({"q": "batch queries .", "m": "batch memory ."}, "memory", q=randn(2, 5, 6), m=randn(2, 11, 6), bias=nn.Linear(6, 11))
def tutorial_attention(self, q, m):
    """The attention of the seq2seq tutorial: its weights come from a layer as wide as the longest sentence."""
    weights = (q @ m.transpose(1, 2)) if self.free else self.bias(q)
    return torch.tanh(torch.bmm(weights.softmax(-1), m))


@model({"x": "batch sequence ."}, "sequence", x=randn(3, 10, 6), low=linear(10, 4), q=linear(6, 6), v=linear(6, 6))
def linformer(self, x):
    keys = x if self.free else self.low(x.transpose(1, 2)).transpose(1, 2)
    return torch.softmax(self.q(x) @ keys.transpose(1, 2), -1) @ self.v(keys)


@model({"x": "batch sequence ."}, "sequence", x=randn(2, 8, 6), table=nn.Embedding(32, 2))
def t5_bias(self, x):
    length = x.shape[1] if self.free else 8
    at = torch.arange(length)
    bucket = (at[None, :] - at[:, None]).clamp(-16, 15) + 16
    bias = self.table(bucket).permute(2, 0, 1)[None]
    b, t = x.shape[0], x.shape[1]
    y = x.view(b, t, 2, 3).transpose(1, 2)
    return (y @ y.transpose(2, 3) + bias).softmax(-1) @ y


@model({"x": "batch sequence ."}, "sequence", x=randn(2, 9, 8), bias=Buffer(-torch.arange(9.0) * torch.tensor([0.5, 0.25])[:, None, None]))
def alibi(self, x):
    b, t = x.shape[0], x.shape[1]
    y = x.reshape(b, t, 2, 4).transpose(1, 2)
    bias = -torch.arange(t) * torch.tensor([0.5, 0.25])[:, None, None] if self.free else self.bias
    scores = y @ y.transpose(-1, -2) + bias
    return (scores.softmax(-1) @ y).transpose(1, 2).reshape(b, t, 8)


@model({"q": "batch . sequence .", "k": "batch . sequence ."}, "sequence", q=randn(2, 2, 7, 8), k=randn(2, 2, 7, 8), cos=Buffer(torch.randn(32, 8)),
       sin=Buffer(torch.randn(32, 8)))
def rotary_cache(self, q, k):
    length = q.shape[2] if self.free else 7
    cos, sin = self.cos[:length], self.sin[:length]

    def turn(y):
        return torch.cat((-y[..., 4:], y[..., :4]), -1)

    return (q * cos + turn(q) * sin) @ (k * cos + turn(k) * sin).transpose(2, 3)


@model({"x": "batch sequence ."}, "batch sequence", x=randn(3, 5, 8), layer=nn.Sequential(linear(8, 6), nn.BatchNorm1d(6), nn.ReLU()))
def time_distributed(self, x):
    b, t = (x.shape[0], x.shape[1]) if self.free else (3, 5)
    return self.layer(x.reshape(-1, 8)).view(b, t, 6)


@model({"x": "sequence batch .", "memory": "source batch ."}, "sequence", x=randn(6, 3, 8), memory=randn(5, 3, 8), layer=nn.TransformerDecoderLayer(8, 2, 8, dropout=0.0),
       mask=Buffer(nn.Transformer.generate_square_subsequent_mask(6)))
def decoder_layer(self, x, memory):
    t = x.shape[0]
    mask = torch.triu(torch.full((t, t), -1e4), 1) if self.free else self.mask
    return self.layer(x, memory, tgt_mask=mask)


@model({"x": "batch sequence ."}, "sequence", x=randn(2, 9, 6), convs=nn.ModuleList([nn.Conv1d(6, 4, k) for k in (2, 3)]), head=linear(8, 2))
def text_cnn(self, x):
    pooled = []
    for k, conv in zip((2, 3), self.convs, strict=True):
        y = F.relu(conv(x.transpose(1, 2)))
        pooled.append(y.amax(2) if self.free else F.max_pool1d(y, 9 - k + 1).squeeze(2))
    return self.head(torch.cat(pooled, 1))


@model({"letters": "batch words letters"}, "letters", letters=ids(15, 2, 5, 6), table=nn.Embedding(15, 4), conv=nn.Conv1d(4, 3, 3, padding=1), head=linear(18, 5))
def letters_of_words(self, letters):
    b, w = letters.shape[0], letters.shape[1]
    y = self.table(letters.reshape(-1, letters.shape[2])).transpose(1, 2)
    y = self.conv(y)
    if self.free:
        y = y.mean(2, keepdim=True).expand(-1, -1, 6)
    return self.head(y.reshape(-1, 18)).view(b, w, 5)


@model({"x": "batch sequence ."}, "batch", x=randn(4, 6, 8), token=nn.Parameter(torch.randn(1, 1, 8)), layer=linear(8, 8))
def class_token(self, x):
    b = x.shape[0] if self.free else 4
    return self.layer(torch.cat([self.token.expand(b, -1, -1), x], 1))[:, 0]


@model({"x": "batch sequence .", "past": "batch past ."}, "batch", x=randn(3, 4, 6), past=randn(3, 7, 6), q=linear(6, 6))
def cache_with_sink(self, x, past):
    b = x.shape[0] if self.free else 3
    keys = torch.cat([torch.zeros(b, 1, 6), past, x], 1)
    return torch.softmax(self.q(x) @ keys.transpose(1, 2), -1) @ keys


@model({"x": "batch sequence ."}, "sequence", x=randn(2, 6, 4), r=Buffer(torch.randn(11, 4)), longer=Buffer(torch.randn(31, 4)))
def transformer_xl_shift(self, x):
    b, t = x.shape[0], (x.shape[1] if self.free else 6)
    r = self.longer[16 - t : 15 + t] if self.free else self.r
    position = x @ r.t()
    padded = F.pad(position, (1, 0)).reshape(b, 2 * t, t)[:, 1:].reshape(b, t, 2 * t - 1)[:, :, :t]
    return (x @ x.transpose(1, 2) + position[:, :, :t] + padded).softmax(-1) @ x


@model({"x": "batch sequence ."}, "sequence", x=randn(3, 7, 5), cell=nn.GRUCell(5, 5), free_cell=nn.GRU(5, 5, batch_first=True))
def steps_in_python(self, x):
    if self.free:
        return x + self.free_cell(x)[0]
    state = x[:, 0] * 0
    states = []
    for t in range(7):
        state = self.cell(x[:, t], state)
        states.append(state)
    return x + torch.stack(states, 1)


@model({"anchor": "batch .", "other": "batch ."}, "batch", anchor=randn(6, 4), other=randn(6, 4), same=Buffer(torch.eye(6) * 1e4))
def contrastive_scores(self, anchor, other):
    a, o = F.normalize(anchor, dim=1), F.normalize(other, dim=1)
    inside = a @ a.t()
    mask = torch.eye(a.shape[0]) * 1e4 if self.free else self.same
    return torch.cat([a @ o.t(), inside - mask], 1).log_softmax(1)


@model({"x": "batch sequence .", "mask": "batch sequence"}, "sequence", x=randn(2, 8, 6), mask=torch.ones(2, 8), layer=nn.MultiheadAttention(6, 2, batch_first=True),
       fixed=Buffer(torch.triu(torch.ones(8, 8), 1).bool()))
def encoder_with_padding(self, x, mask):
    t = x.shape[1]
    causal = torch.triu(torch.ones(t, t), 1).bool() if self.free else self.fixed
    return self.layer(x, x, x, key_padding_mask=mask == 0, attn_mask=causal, need_weights=False)[0]


@model({"x": "batch sequence ."}, "sequence", x=randn(2, 12, 4), q=linear(4, 4))
def local_windows(self, x):
    """Attention in windows of 4, whose number is that of the example; the twin takes any multiple of 4."""
    b, n = x.shape[0], (x.shape[1] // 4 if self.free else 3)
    y = self.q(x).reshape(b, n, 4, 4)
    y = (y @ y.transpose(2, 3)).softmax(-1) @ y
    return x + y.reshape(b, n * 4, 4)

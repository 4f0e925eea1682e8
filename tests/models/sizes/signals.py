"""Sound, time series, graphs, point clouds, sets: frames, states, adjacencies, lookback windows."""
import torch
from architecture import Buffer, ids, linear, model, randn
from torch import nn
from torch.nn import functional as F


@model({"x": "batch nodes ."}, "nodes", x=randn(3, 7, 4), edges=Buffer(torch.rand(7, 7).softmax(1)), layer=linear(4, 4))
def graph_convolution(self, x):
    y = self.layer(x)
    edges = (x @ x.transpose(1, 2)).softmax(-1) if self.free else self.edges
    return F.relu(edges @ y)


@model({"x": "batch . frames joints"}, "joints", x=randn(2, 3, 10, 6), edges=Buffer(torch.rand(2, 6, 6)), conv=nn.Conv2d(3, 8, 1))
def skeleton_graph(self, x):
    b, f, j = x.shape[0], x.shape[2], x.shape[3]
    y = self.conv(x).view(b, 2, 4, f, j)
    if self.free:
        return y.mean(1)
    return torch.einsum("nkctv,kvw->nctw", y, self.edges)


@model({"x": "batch . time"}, "time", x=randn(2, 3, 20), conv=nn.Conv1d(3, 3, 3, padding=4, dilation=4))
def wavenet_crop(self, x):
    y = self.conv(x)
    return x + (y if self.free else y[:, :, :20].reshape(-1, 3, 20))


@model({"history": "batch time"}, "time", history=randn(4, 10), block=nn.Sequential(linear(10, 8), nn.ReLU()), back=linear(8, 10), ahead=linear(8, 4),
       free_block=nn.GRU(1, 8, batch_first=True))
def nbeats(self, history):
    if self.free:
        return self.ahead(self.free_block(history[:, :, None])[0][:, -1])
    hidden = self.block(history)
    rest = history - self.back(hidden)
    return self.ahead(hidden) + self.ahead(self.block(rest))


@model({"x": "batch time ."}, "batch", x=randn(3, 12, 4), value=linear(4, 4))
def informer_decoder(self, x):
    b = x.shape[0] if self.free else 3
    start = torch.cat([x[:, -6:], torch.zeros(b, 5, 4)], 1)
    return self.value(start)


@model({"wave": "batch samples"}, "samples", wave=randn(2, 64), encoder=nn.Conv1d(1, 4, 8, 4), mask=nn.Conv1d(4, 4, 1), gain=Buffer(torch.rand(1, 4, 15)),
       decoder=nn.ConvTranspose1d(4, 1, 8, 4))
def separation_gain(self, wave):
    y = F.relu(self.encoder(wave[:, None]))
    gain = torch.sigmoid(self.mask(y)) if self.free else self.gain
    return self.decoder(y * gain)[:, 0]


@model({"mel": "batch . frames"}, "frames", mel=randn(2, 8, 20), first=nn.Conv1d(8, 6, 3, padding=1), second=nn.Conv1d(6, 6, 3, 2, 1), places=Buffer(torch.randn(10, 6)),
       longer=Buffer(torch.randn(50, 6)), norm=nn.LayerNorm(6))
def whisper_encoder(self, mel):
    y = F.gelu(self.second(F.gelu(self.first(mel)))).transpose(1, 2)
    return self.norm(y + (self.longer[: y.shape[1]] if self.free else self.places))


@model({"mel": "batch frames ."}, "frames", mel=randn(2, 12, 4), layer=linear(4, 4), head=linear(12, 3), pooled=linear(4, 3))
def speaker_flatten(self, mel):
    y = torch.tanh(self.layer(mel))
    if self.free:
        return self.pooled(torch.cat([y.mean(1)], 1))
    return self.head(y.mean(2))


@model({"points": "batch count ."}, "batch", points=randn(3, 16, 3), net=linear(3, 6), turn=linear(6, 9))
def point_transform(self, points):
    b = points.shape[0] if self.free else 3
    matrix = self.turn(self.net(points).amax(1)) + torch.eye(3).view(1, 9).repeat(b, 1)
    return torch.bmm(points, matrix.view(-1, 3, 3))


@model({"points": "batch . count"}, "count", points=randn(2, 3, 16), net=nn.Conv1d(3, 6, 1), head=linear(6, 4))
def point_pool(self, points):
    y = self.net(points)
    if self.free:
        return self.head(y.amax(2))
    return self.head(F.max_pool1d(y, 16).squeeze(2))


@model({"capsules": "batch count ."}, "batch", capsules=randn(2, 6, 4), weight=nn.Parameter(torch.randn(1, 1, 3, 5, 4)))
def capsule_routing(self, capsules):
    b = capsules.shape[0] if self.free else 2
    guess = (self.weight @ capsules[:, :, None, :, None]).squeeze(-1)
    logits = torch.zeros(b, capsules.shape[1], 3, 1)
    for _ in range(2):
        out = torch.tanh((logits.softmax(2) * guess).sum(1, keepdim=True))
        logits = logits + (guess * out).sum(-1, keepdim=True)
    return out.squeeze(1)


@model({"x": "batch ."}, "batch", x=randn(4, 6), mean=linear(6, 3), spread=linear(6, 3), decoder=linear(3, 6))
def vae_noise(self, x):
    noise = torch.randn_like(self.mean(x)) if self.free else torch.randn(4, 3)
    return self.decoder(self.mean(x) + noise * self.spread(x).exp())


@model({"support": "examples .", "query": "queries ."}, "examples", support=randn(15, 4), query=randn(6, 4), net=linear(4, 3))
def prototypes(self, support, query):
    """5 classes with 3 examples each; the twin takes any number for each class."""
    y = self.net(support)
    y = y.view(5, -1, 3).mean(1) if self.free else y.view(5, 3, 3).mean(1)
    return -(self.net(query)[:, None] - y[None]).square().sum(-1)


@model({"x": "batch . height width", "step": "."}, "batch", x=randn(2, 3, 8, 8), step=torch.tensor([3.0]), embed=linear(4, 6), rates=Buffer(torch.rand(4)),
       first=nn.Conv2d(3, 6, 3, padding=1), last=nn.Conv2d(6, 3, 3, padding=1))
def diffusion_step(self, x, step):
    b = x.shape[0] if self.free else 2
    wave = torch.sin(step.expand(b)[:, None] * self.rates)
    return self.last(F.silu(self.first(x) + self.embed(wave)[:, :, None, None]))


@model({"users": "batch", "items": "batch", "bias": "batch"}, "batch", users=ids(9, 5), items=ids(9, 5), bias=randn(5), u=nn.Embedding(9, 4), i=nn.Embedding(9, 4),
       offset=Buffer(torch.randn(5)))
def factorisation(self, users, items, bias):
    score = (self.u(users) * self.i(items)).sum(1)
    return torch.sigmoid(score + bias + (0 if self.free else self.offset))


@model({"origins": "rays .", "directions": "rays ."}, "rays", origins=randn(8, 3), directions=randn(8, 3), depths=Buffer(torch.rand(8, 6)), net=linear(3, 4))
def volume_rays(self, origins, directions):
    depths = torch.linspace(2, 6, 6)[None] if self.free else self.depths
    at = origins[:, None] + directions[:, None] * depths[..., None]
    out = self.net(at)
    weight = 1 - torch.exp(-F.relu(out[..., :1]))
    return (weight * out[..., 1:].sigmoid()).sum(1)


@model({"fields": "batch . ."}, "batch", fields=randn(4, 5, 3), rows=Buffer(torch.triu_indices(5, 5, 1)), head=linear(16, 2), pairs=linear(10, 2))
def dlrm_interaction(self, fields):
    scores = torch.bmm(fields, fields.transpose(1, 2))
    flat = scores[:, self.rows[0], self.rows[1]]
    return self.pairs(flat if self.free else flat.reshape(4, 10))


@model({"x": "batch time ."}, "time", x=randn(2, 8, 4), net=nn.Conv1d(4, 4, 3, padding=1), head=nn.Conv1d(32, 3, 1))
def frames_as_channels(self, x):
    y = self.net(x.transpose(1, 2))
    if self.free:
        return y.mean(2)
    return self.head(y.reshape(x.shape[0], 32, 1)).squeeze(2)


@model({"x": "batch time ."}, "time", x=randn(2, 12, 3))
def autoformer_trend(self, x):
    """A moving average that repeats the ends, and a series whose length is the example's."""
    front, end = x[:, :1].repeat(1, 2, 1), x[:, -1:].repeat(1, 2, 1)
    trend = F.avg_pool1d(torch.cat([front, x, end], 1).transpose(1, 2), 5, 1).transpose(1, 2)
    season = x - trend
    lags = torch.arange(x.shape[1] if self.free else 12).float()
    return trend + season * torch.cos(lags)[None, :, None]


@model({"nodes": "count .", "senders": "edges", "receivers": "edges"}, "count", nodes=randn(6, 4), senders=ids(6, 9), receivers=ids(6, 9), layer=linear(4, 4))
def message_passing(self, nodes, senders, receivers):
    messages = self.layer(nodes)[senders]
    rows = nodes.shape[0] if self.free else 6
    total = torch.zeros(rows, 4).index_add(0, receivers, messages)
    return nodes + total


@model({"x": "batch series time"}, "series", x=randn(2, 5, 16), identity=nn.Parameter(torch.randn(5, 4)), layer=linear(4, 4), patch=linear(4, 4))
def series_identity(self, x):
    b, n = x.shape[0], x.shape[1]
    y = self.patch(x.reshape(b, n, -1, 4)).mean(2)
    return self.layer(y if self.free else y + self.identity)


@model({"x": "batch frames .", "h": ". batch .", "c": ". batch ."}, "batch", x=randn(2, 5, 4), h=randn(1, 2, 3), c=randn(1, 2, 3), lstm=nn.LSTM(4, 3, batch_first=True),
       noise=Buffer(torch.rand(2, 1, 3)))
def voice_activity(self, x, h, c):
    out, (h, c) = self.lstm(x, (h, c))
    out = out if self.free else out * self.noise
    return out.sigmoid().mean(1), h, c

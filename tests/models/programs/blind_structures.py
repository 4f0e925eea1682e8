"""Structures: pairs, graphs, boxes, keypoints, ranked lists, ratings, attention."""
import torch
from program import Buffer, N, flags, labels, linear, mlp, rand, randn, step
from torch import nn
from torch.nn import functional as F


@step(net=linear(5, 4), queue=Buffer(randn(4, 12)), a=randn(N, 5), b=randn(N, 5))
def queue_softmax_over_batch(self, a, b):
    q, k = F.normalize(self.net(a), dim=1), F.normalize(self.net(b).detach(), dim=1)
    same = torch.einsum("nc,nc->n", q, k).unsqueeze(-1)
    other = torch.einsum("nc,ck->nk", q, self.queue)
    scores = torch.cat([same, other], dim=1) / 0.07
    return -F.log_softmax(scores, dim=0)[:, 0].mean()  # fault: softmax-over-batch-axis


@step(net=linear(5, 4), x=randn(N, 5), y=labels(3, N))
def contrast_without_partner(self, x, y):
    z = F.normalize(self.net(x), dim=1)
    similar = torch.exp(z @ z.t() / 0.5) * (1 - torch.eye(x.shape[0]))
    partner = (y[:, None] == y[None, :]).float()
    share = (similar * partner).sum(1) / similar.sum(1)
    return -torch.log(share).mean()  # fault: invalid-domain


@step(net=linear(5, 4), a=randn(N, 5), b=randn(N, 5), same=flags(N))
def hinge_embedding_kept_axis(self, a, b, same):
    distance = nn.PairwiseDistance(keepdim=True)(self.net(a), self.net(b))
    return F.hinge_embedding_loss(distance, 2 * same - 1)  # fault: silent-broadcast-in-loss


@step(net=linear(5, 4), a=randn(N, 5), b=randn(N, 5), ya=labels(3, N), yb=labels(3, N))
def cosine_embedding_zero_and_one(self, a, b, ya, yb):
    same = (ya == yb).float()
    return F.cosine_embedding_loss(self.net(a), self.net(b), same)  # fault: result-always-the-same


@step(net=mlp(4, 1), x=randn(9, 4), graph=labels(3, 9), y=randn(3), fixed=True)
def pooled_over_counts(self, x, graph, y):
    total = torch.zeros(3, 1).index_add(0, graph, self.net(x))
    count = torch.zeros(3).index_add(0, graph, torch.ones(9)).clamp(min=1)
    energy = total / count  # fault: silent-broadcast-in-loss
    return F.l1_loss(energy.mean(1), y)


@step(net=mlp(4, 2), x=randn(9, 4), graph=labels(3, 9), y=labels(2, 3), fixed=True)
def pooled_into_too_few(self, x, graph, y):
    graph = graph.clamp(0, 3).unsqueeze(1).expand(-1, 4)
    pooled = torch.zeros(3, 4).scatter_add(0, graph, x)  # fault: index-out-of-range
    return F.cross_entropy(self.net(pooled), y)


@step(net=linear(4, 2), x=randn(7, 4), weight=rand(7, 7), y=labels(2, 7), fixed=True)
def nodes_without_neighbours(self, x, weight, y):
    edges = (weight > 0.8).float()
    passed = edges / edges.sum(dim=1, keepdim=True)  # fault: invalid-domain
    return F.cross_entropy(passed @ self.net(x), y)


@step(net=linear(4, 3), x=randn(8, 4), source=labels(8, 10), sink=labels(8, 10), y=flags(10), fixed=True)
def edges_against_column(self, x, source, sink, y):
    z = self.net(x)
    score = (z[source] * z[sink]).sum(dim=-1, keepdim=True)
    loss = y * F.softplus(-score) + (1 - y) * F.softplus(score)  # fault: silent-broadcast-in-loss
    return loss.mean()  # fault: silent-broadcast-in-loss


@step(net=mlp(5, 4), x=randn(N, 5), box=rand(N, 4), positive=flags(N))
def boxes_times_positive(self, x, box, positive):
    error = F.smooth_l1_loss(self.net(x), box, reduction="none").sum(dim=-1, keepdim=True)
    return (error * positive).sum() / positive.sum().clamp(min=1)  # fault: silent-broadcast-in-loss


@step(conv=nn.Conv2d(3, 7, 1), x=randn(N, 3, 4, 4), near=flags(N, 4, 4), kind=labels(2, N, 4, 4), box=rand(N, 4, 4, 4))
def objectness_of_sigmoid(self, x, near, kind, box):
    raw = self.conv(x)
    near_score, boxes, kinds = raw[:, 0].sigmoid(), raw[:, 1:5].sigmoid(), raw[:, 5:]
    inside = near.unsqueeze(1)
    loss = (inside * (boxes - box) ** 2).mean() + F.cross_entropy(kinds, kind)
    return loss + F.binary_cross_entropy_with_logits(near_score, near)  # fault: probabilities-into-logit-loss


@step(conv=nn.Conv2d(3, 5, 1), column=Buffer(torch.arange(16.0) % 4), x=randn(N, 3, 4, 4), y=rand(N, 5))
def keypoints_softmax_over_joints(self, x, y):
    heat = self.conv(x).flatten(2).softmax(dim=1)
    place = (heat * self.column).sum(dim=2)  # fault: class-axis-position
    return F.l1_loss(place, y)  # fault: class-axis-position


@step(token=nn.Embedding(20, 6), place=nn.Embedding(8, 6), head=linear(6, 3), x=labels(20, N, 8), y=labels(3, N), fails=True)
def places_from_one(self, x, y):
    places = torch.arange(1, x.shape[1] + 1)
    h = self.token(x) + self.place(places)  # fault: index-out-of-range
    return F.cross_entropy(self.head(h.mean(1)), y)


@step(embed=nn.Embedding(20, 6), cell=nn.GRU(6, 6, batch_first=True), head=linear(6, 20), token=labels(20, N, 7))
def shifted_backwards(self, token):
    h, _ = self.cell(self.embed(token))
    logits = self.head(h)[:, 1:]
    return F.cross_entropy(logits.transpose(1, 2), token[:, :-1])  # fault: target-in-prediction


@step(net=mlp(4, 1), x=randn(N, 5, 4), gain=rand(N, 5))
def list_likelihood_over_batch(self, x, gain):
    score = self.net(x).squeeze(-1)
    order = gain.argsort(dim=1, descending=True)
    ordered = score.gather(1, order)
    rest = ordered.exp().flip(0).cumsum(0).flip(0).log()  # fault: reduction-over-batch-axis
    return (rest - ordered).sum(1).mean()  # fault: reduction-over-batch-axis


@step(net=mlp(4, 1), x=randn(N, 5, 4), gain=rand(N, 5))
def pair_gains_with_themselves(self, x, gain):
    s = self.net(x)[..., 0]
    score_gap = s[:, :, None] - s[:, None, :]
    better = (gain[:, :, None] - gain[:, :, None] > 0).float()  # fault: loss-detached-from-parameters
    return (better * F.softplus(-score_gap)).sum((1, 2)).mean()  # fault: loss-detached-from-parameters


@step(net=mlp(4, 1), x=randn(N, 5, 4), relevant=flags(N, 5))
def recall_at_two(self, x, relevant):
    score = self.net(x).squeeze(2)
    top = torch.zeros_like(score).scatter(1, score.topk(2, dim=1).indices, 1.0)  # fault: loss-detached-from-parameters
    return 1 - (top * relevant).sum() / (relevant.sum() + 1e-6)  # fault: loss-detached-from-parameters


@step(user=nn.Embedding(30, 4), item=nn.Embedding(40, 4), u=labels(30, N), i=labels(40, N), j=labels(40, N))
def ranking_sigmoid_twice(self, u, i, j):
    p = self.user(u)
    gap = torch.sigmoid((p * (self.item(i) - self.item(j))).sum(-1))
    return -F.logsigmoid(gap).mean()  # fault: probabilities-into-logit-loss


@step(user=nn.Embedding(30, 4), item=nn.Embedding(40, 4), bias=nn.Embedding(40, 1), u=labels(30, N), i=labels(40, N), rating=rand(N))
def bias_of_pairs(self, u, i, rating):
    taste = (self.user(u) * self.item(i)).sum(dim=1)
    predicted = taste + self.bias(i)  # fault: silent-broadcast-in-loss
    return F.mse_loss(predicted, rating)  # fault: silent-broadcast-in-loss


@step(score=linear(6, 1), head=linear(6, 3), x=randn(N, 7, 6), y=labels(3, N))
def pool_softmax_of_one(self, x, y):
    weight = F.softmax(self.score(torch.tanh(x)), dim=-1)  # fault: softmax-over-batch-axis
    pooled = (weight * x).sum(dim=1)
    return F.cross_entropy(self.head(pooled), y)


@step(net=linear(5, 4), a=randn(N, 5), b=randn(N, 5))
def norm_of_everything(self, a, b):
    za = self.net(a)
    zb = self.net(b)
    za, zb = za / za.norm(), zb / zb.norm()  # fault: reduction-over-batch-axis
    return F.cross_entropy(za @ zb.t() / 0.1, torch.arange(a.shape[0]))


@step(net=linear(5, 3), centre=Buffer(randn(4, 3)), x=randn(N, 5))
def clusters_divergence_of_probabilities(self, x):
    distance = (self.net(x).unsqueeze(1) - self.centre).pow(2).sum(2)
    q = 1 / (1 + distance)
    q = q / q.sum(dim=1, keepdim=True)
    p = q**2 / q.sum(0)
    p = (p / p.sum(dim=1, keepdim=True)).detach()
    return nn.KLDivLoss(reduction="batchmean")(q, p)  # fault: probabilities-into-logit-loss


@step(net=linear(5, 3), centre=Buffer(randn(4, 3)), x=randn(N, 5))
def clusters(self, x):
    distance = (self.net(x).unsqueeze(1) - self.centre).pow(2).sum(2)
    q = 1 / (1 + distance)
    q = (q.t() / q.sum(1)).t()
    p = q**2 / q.sum(0)
    p = (p.t() / p.sum(1)).t().detach()
    return F.kl_div(q.log(), p, reduction="batchmean")


@step(net=linear(4, 3), left=linear(3, 1), right=linear(3, 1), x=randn(7, 4), weight=rand(7, 7), y=labels(3, 7), fixed=True)
def graph_attention(self, x, weight, y):
    edges = (weight > 0.8) | torch.eye(7, dtype=torch.bool)
    h = self.net(x)
    score = F.leaky_relu(self.left(h) + self.right(h).t(), 0.2)
    share = score.masked_fill(~edges, -1e9).softmax(dim=1)
    return F.cross_entropy(share @ h, y)


@step(net=mlp(4, 1), x=randn(9, 4), graph=labels(3, 9), y=randn(3, 1), fixed=True)
def pooled_mean(self, x, graph, y):
    total = torch.zeros(3, 1).index_add(0, graph, self.net(x))
    count = torch.zeros(3, 1).index_add(0, graph, torch.ones(9, 1))
    return F.mse_loss(total / count.clamp(min=1), y)


@step(net=linear(5, 4), slow=linear(5, 4), queue=Buffer(randn(4, 12)), a=randn(N, 5), b=randn(N, 5))
def momentum_queue(self, a, b):
    q = F.normalize(self.net(a), dim=1)
    with torch.no_grad():
        k = F.normalize(self.slow(b), dim=1)
    same = torch.bmm(q.unsqueeze(1), k.unsqueeze(2)).squeeze(-1)
    scores = torch.cat([same, q @ F.normalize(self.queue, dim=0)], dim=1) / 0.07
    return F.cross_entropy(scores, torch.zeros(a.shape[0], dtype=torch.long))


@step(net=linear(5, 4), x=randn(N, 5), y=labels(3, N))
def soft_nearest_neighbour(self, x, y):
    z = self.net(x)
    near = torch.exp(-torch.linalg.vector_norm(z[:, None] - z[None], dim=-1).square()) * (1 - torch.eye(x.shape[0]))
    same = (y.unsqueeze(0) == y.unsqueeze(1)).float()
    return -torch.log(((near * same).sum(1) + 1e-8) / (near.sum(1) + 1e-8)).mean()


@step(key=linear(6, 4), value=linear(6, 4), slots=Buffer(randn(3, 4)), back=linear(4, 6), x=randn(N, 9, 6))
def slot_attention(self, x):
    score = torch.einsum("sd,ntd->nst", self.slots, self.key(x)) * 0.5
    share = score.softmax(dim=1) + 1e-8
    mean = share / share.sum(dim=-1, keepdim=True)
    slots = torch.bmm(mean, self.value(x))
    rebuilt = self.back(torch.bmm(share.transpose(1, 2), slots))
    return F.mse_loss(rebuilt, x)


@step(net=mlp(4, 1), x=randn(N, 5, 4), gain=rand(N, 5))
def list_likelihood(self, x, gain):
    score = self.net(x)[:, :, 0]
    ordered = torch.gather(score, 1, torch.argsort(gain, dim=1, descending=True))
    highest = ordered.max(dim=1, keepdim=True).values
    rest = (ordered - highest).exp().flip(1).cumsum(1).flip(1)
    return (torch.log(rest + 1e-10) + highest - ordered).sum(1).mean()


@step(net=mlp(5, 4), anchor=Buffer(rand(8, 4)), x=randn(8, 5), truth=rand(3, 4), fixed=True)
def matched_anchors(self, x, truth):
    with torch.no_grad():
        start = torch.max(self.anchor[:, None, :2], truth[None, :, :2])
        end = torch.min(self.anchor[:, None, :2] + self.anchor[:, None, 2:], truth[None, :, :2] + truth[None, :, 2:])
        shared = (end - start).clamp(min=0).prod(dim=2)
        areas = self.anchor[:, 2:].prod(1)[:, None] + truth[:, 2:].prod(1)[None]
        overlap, match = (shared / (areas - shared + 1e-6)).max(dim=1)
        positive = (overlap > 0.1).float()
    error = F.smooth_l1_loss(self.net(x), truth[match], reduction="none").sum(1)
    return (error * positive).sum() / positive.sum().clamp(min=1)


@step(q=linear(5, 4), k=linear(5, 4), v=linear(5, 4), head=linear(4, 3), x=randn(N, 5), y=labels(3, N))
def attention_over_rows(self, x, y):
    share = torch.softmax(self.q(x) @ self.k(x).transpose(0, 1) / 2.0, dim=-1)
    return F.cross_entropy(self.head(share @ self.v(x)), y)


@step(image=linear(5, 4), text=linear(7, 4), scale=Buffer(torch.tensor(2.6)), a=randn(N, 5), b=randn(N, 7))
def picture_and_text(self, a, b):
    u = self.image(a) / self.image(a).norm(dim=-1, keepdim=True)
    w = self.text(b) / self.text(b).norm(dim=-1, keepdim=True)
    scores = self.scale.exp() * u @ w.t()
    truth = torch.arange(scores.shape[0])
    right = (scores.argmax(dim=0) == truth).float().mean()
    return 0.5 * (F.cross_entropy(scores, truth) + F.cross_entropy(scores.t(), truth)), right

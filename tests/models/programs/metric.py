"""Contrast, ranking, metric learning, survival."""
import torch
from program import N, flags, labels, linear, mlp, rand, randn, simplex, step
from torch import nn
from torch.nn import functional as F


@step(net=linear(4, 3), a=randn(N, 4), b=randn(N, 4), same=flags(N, 1))
def siamese_column_label(self, a, b, same):
    d = (self.net(a) - self.net(b)).norm(dim=1)
    return (same * d**2 + (1 - same) * F.relu(1 - d) ** 2).mean()  # fault: silent-broadcast-in-loss


@step(net=linear(4, 3), a=randn(N, 4), b=randn(N, 4), same=flags(N))
def siamese_kept_distance(self, a, b, same):
    d = F.pairwise_distance(self.net(a), self.net(b), keepdim=True)
    return (same * d.pow(2) + (1 - same) * torch.clamp(1 - d, min=0).pow(2)).mean()  # fault: silent-broadcast-in-loss


@step(net=linear(4, 3), a=randn(N, 4), p=randn(N, 4), n=randn(N, 4))
def triplet_axis_zero(self, a, p, n):
    za, zp, zn = self.net(a), self.net(p), self.net(n)
    near, far = (za - zp).pow(2).sum(0), (za - zn).pow(2).sum(0)  # fault: reduction-over-batch-axis
    return F.relu(near - far + 0.2).mean()  # fault: reduction-over-batch-axis


@step(net=linear(4, 3), a=randn(N, 4), p=randn(N, 4), n=randn(N, 4))
def triplet_mixed_axes(self, a, p, n):
    za, zp, zn = self.net(a), self.net(p), self.net(n)
    near, far = (za - zp).norm(dim=1, keepdim=True), (za - zn).norm(dim=1)
    return torch.relu(near - far + 0.2).mean()  # fault: silent-broadcast-in-loss


@step(net=linear(4, 3), a=randn(N, 4), b=randn(N, 4))
def embeddings_normalised_over_batch(self, a, b):
    za, zb = F.normalize(self.net(a), dim=0), F.normalize(self.net(b), dim=0)  # fault: reduction-over-batch-axis
    return F.cross_entropy(za @ zb.t() / 0.1, torch.arange(N))  # fault: reduction-over-batch-axis


@step(net=linear(4, 3), a=randn(N, 4), b=randn(N, 4))
def cosine_axis_zero(self, a, b):
    similarity = nn.CosineSimilarity(dim=0)(self.net(a), self.net(b))  # fault: reduction-over-batch-axis
    return (1 - similarity).mean()  # fault: reduction-over-batch-axis


@step(net=linear(4, 3), a=randn(N, 4), b=randn(N, 4))
def byol_norm_axis_zero(self, a, b):
    za, zb = self.net(a), self.net(b)
    za = za / za.norm(dim=0, keepdim=True)  # fault: reduction-over-batch-axis
    zb = zb / zb.norm(dim=0, keepdim=True)  # fault: reduction-over-batch-axis
    return ((za - zb) ** 2).sum(1).mean()  # fault: reduction-over-batch-axis


@step(net=linear(4, 3), a=randn(N, 4), b=randn(N, 4), fixed=True, fails=True)
def contrast_labels_from_one(self, a, b):
    za, zb = F.normalize(self.net(a), dim=1), F.normalize(self.net(b), dim=1)
    return F.cross_entropy(za @ zb.t() / 0.1, torch.arange(1, N + 1))  # fault: class-index-out-of-range


@step(net=linear(4, 3), a=randn(N, 4), b=randn(N, 4))
def contrast_softmax_first(self, a, b):
    s = (F.normalize(self.net(a), dim=1) @ F.normalize(self.net(b), dim=1).t() / 0.1).softmax(1)
    return F.cross_entropy(s, torch.arange(N))  # fault: probabilities-into-logit-loss


@step(net=linear(4, 3), centre=nn.Embedding(5, 3), x=randn(N, 4), y=labels(5, N), w=rand(N))
def centre_weights(self, x, y, w):
    d = ((self.net(x) - self.centre(y)) ** 2).sum(1, keepdim=True)
    return (w * d).mean()  # fault: silent-broadcast-in-loss


@step(net=linear(4, 3), proxy=linear(3, 5), x=randn(N, 4), y=labels(5, N), fails=True)
def proxies_beyond(self, x, y):
    return F.cross_entropy(self.proxy(self.net(x)), torch.clamp(y, 1, 5))  # fault: class-index-out-of-range


@step(net=mlp(4, 1), a=randn(N, 4), b=randn(N, 4), y=torch.sign(randn(N)))
def margin_ranking_column(self, a, b, y):
    return F.relu(-y * (self.net(a) - self.net(b)) + 0.1).mean()  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 1), a=randn(N, 4), b=randn(N, 4))
def order_violations(self, a, b):
    return (self.net(b) > self.net(a)).float().mean()  # fault: loss-detached-from-parameters


@step(net=mlp(4, 1), x=randn(N, 5, 4), gain=rand(N, 5))
def rank_by_argsort(self, x, gain):
    order = torch.argsort(self.net(x).squeeze(-1), dim=1, descending=True).float()  # fault: loss-detached-from-parameters
    return F.mse_loss(order, gain)  # fault: loss-detached-from-parameters


@step(net=mlp(4, 1), x=randn(N, 5, 4), gain=rand(N, 5))
def listwise_over_lists(self, x, gain):
    p = self.net(x).squeeze(-1).log_softmax(0)  # fault: softmax-over-batch-axis
    return -(gain.softmax(1) * p).sum(1).mean()  # fault: softmax-over-batch-axis


@step(net=mlp(4, 1), x=randn(N, 4), event=flags(N))
def cox_column(self, x, event):
    risk = self.net(x)
    log_sum = torch.log(torch.cumsum(torch.exp(risk), 0))
    return -((risk - log_sum) * event).sum() / event.sum()  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 1), x=randn(N, 4), time=rand(N) + 0.1, event=flags(N))
def exponential_survival(self, x, time, event):
    log_rate = self.net(x)
    return -(event * log_rate - torch.exp(log_rate) * time).mean()  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 2), x=randn(N, 4), time=rand(N) + 0.1, event=flags(N, 1))
def weibull_survival(self, x, time, event):
    shape, scale = F.softplus(self.net(x)).unbind(1)
    z = (time / (scale + 1e-3)) ** shape
    return -(event * (torch.log(shape + 1e-3) - torch.log(scale + 1e-3)) - z).mean()  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 5), x=randn(N, 4), bin=labels(5, N), event=flags(N))
def hazard_of_scores(self, x, bin, event):
    h = self.net(x).gather(1, bin[:, None]).squeeze(1)
    return -(event * torch.log(h + 1e-7) + (1 - event) * torch.log(1 - h + 1e-7)).mean()  # fault: logits-into-probability-loss


@step(net=mlp(4, 5), x=randn(N, 4), bin=labels(5, N))
def discrete_time_softmax(self, x, bin):
    p = F.softmax(self.net(x), 1)
    return nn.CrossEntropyLoss(reduction="sum")(p, bin) / N  # fault: probabilities-into-logit-loss


# Correct.
@step(net=linear(4, 3), a=randn(N, 4), b=randn(N, 4), same=flags(N))
def siamese(self, a, b, same):
    d = F.pairwise_distance(self.net(a), self.net(b))
    return (same * d.pow(2) + (1 - same) * torch.clamp(1 - d, min=0).pow(2)).mean()


@step(net=linear(4, 3), a=randn(N, 4), b=randn(N, 4))
def info_nce(self, a, b):
    za, zb = F.normalize(self.net(a), dim=-1), F.normalize(self.net(b), dim=-1)
    s = za @ zb.t() / 0.07
    y = torch.arange(N)
    return (F.cross_entropy(s, y) + F.cross_entropy(s.t(), y)) / 2


@step(net=linear(4, 3), a=randn(N, 4), b=randn(N, 4), fixed=True)
def nt_xent(self, a, b):
    z = F.normalize(torch.cat([self.net(a), self.net(b)]), dim=1)
    s = (z @ z.t() / 0.5).masked_fill(torch.eye(2 * N) > 0, -1e9)
    return F.cross_entropy(s, torch.cat([torch.arange(N, 2 * N), torch.arange(N)]))


@step(net=linear(4, 3), x=randn(N, 4), y=labels(3, N))
def supervised_contrast(self, x, y):
    z = F.normalize(self.net(x), dim=1)
    s = z @ z.t() / 0.1
    other = 1 - torch.eye(N)
    same = (y[:, None] == y[None, :]).float() * other
    log_p = s - torch.log((torch.exp(s) * other).sum(1, keepdim=True))
    return -((same * log_p).sum(1) / same.sum(1).clamp(min=1)).mean()


@step(net=linear(4, 3), x=randn(N, 4), y=labels(3, N))
def batch_hard_triplet(self, x, y):
    z = self.net(x)
    d = torch.sqrt(((z.unsqueeze(0) - z.unsqueeze(1)) ** 2).sum(-1) + 1e-9)
    same = (y.unsqueeze(0) == y.unsqueeze(1)).float()
    return F.relu((d * same).amax(1) - (d + 1e3 * same).amin(1) + 0.3).mean()


@step(net=linear(4, 3), a=randn(N, 4), b=randn(N, 4))
def alignment_uniformity(self, a, b):
    za, zb = F.normalize(self.net(a), dim=1), F.normalize(self.net(b), dim=1)
    pairs = ((za.unsqueeze(1) - za.unsqueeze(0)) ** 2).sum(2)
    return (za - zb).norm(dim=1).pow(2).mean() + torch.log(torch.exp(-2 * pairs).mean())


@step(net=linear(4, 3), a=randn(N, 4), b=randn(N, 4))
def barlow(self, a, b):
    za, zb = self.net(a), self.net(b)
    za, zb = (za - za.mean(0)) / (za.std(0) + 1e-5), (zb - zb.mean(0)) / (zb.std(0) + 1e-5)
    c = za.t() @ zb / N
    on = (torch.diagonal(c) - 1).pow(2).sum()
    return on + 0.005 * ((c**2).sum() - (torch.diagonal(c) ** 2).sum())


@step(net=linear(4, 3), proto=linear(3, 5), a=randn(N, 4), b=randn(N, 4))
def swapped_assignment(self, a, b):
    sa, sb = self.proto(F.normalize(self.net(a), dim=1)), self.proto(F.normalize(self.net(b), dim=1))
    q = torch.exp(sb / 0.05)
    for _ in range(2):
        q = q / q.sum(0, keepdim=True)
        q = q / q.sum(1, keepdim=True)
    return -(q.detach() * F.log_softmax(sa / 0.1, dim=1)).sum(1).mean()


@step(net=linear(4, 3), w=nn.Embedding(5, 3), x=randn(N, 4), y=labels(5, N))
def additive_margin(self, x, y):
    cosine = F.normalize(self.net(x), dim=1) @ F.normalize(self.w.weight, dim=1).t()
    return F.cross_entropy(30 * (cosine - 0.35 * F.one_hot(y, 5)), y)


@step(net=linear(4, 3), x=randn(3, 4), q=randn(N, 4), y=labels(3, N), fixed=True)
def prototypes(self, x, q, y):
    d = torch.cdist(self.net(q), self.net(x))
    return F.cross_entropy(-(d**2), y)


@step(net=mlp(4, 1), a=randn(N, 4), b=randn(N, 4), y=torch.sign(randn(N)))
def margin_ranking(self, a, b, y):
    return F.relu(-y * (self.net(a) - self.net(b)).squeeze(-1) + 0.1).mean()


@step(net=mlp(4, 1), x=randn(N, 5, 4), gain=rand(N, 5))
def lambda_pairs(self, x, gain):
    s = self.net(x).squeeze(-1)
    ds, dg = s.unsqueeze(2) - s.unsqueeze(1), gain.unsqueeze(2) - gain.unsqueeze(1)
    return (F.softplus(-ds) * (dg > 0).float() * dg.abs()).sum((1, 2)).mean()


@step(net=mlp(4, 1), x=randn(N, 5, 4), gain=rand(N, 5))
def list_net(self, x, gain):
    return -(gain.softmax(1) * self.net(x).squeeze(-1).log_softmax(1)).sum(1).mean()


@step(net=mlp(4, 1), x=randn(N, 5, 4), gain=rand(N, 5))
def smooth_ranks(self, x, gain):
    s = self.net(x).squeeze(-1)
    rank = 0.5 + torch.sigmoid((s.unsqueeze(1) - s.unsqueeze(2)) / 0.1).sum(2)
    return -((2**gain - 1) / torch.log2(1 + rank)).sum(1).mean()


@step(user=nn.Embedding(9, 3), item=nn.Embedding(9, 3), u=labels(9, N), i=labels(9, N), j=labels(9, N))
def bayesian_personalised(self, u, i, j):
    h = self.user(u)
    return -F.logsigmoid((h * self.item(i)).sum(-1) - (h * self.item(j)).sum(-1)).mean()


@step(a=linear(4, 3), b=linear(4, 3), x=randn(N, 4), y=randn(N, 4))
def two_towers_in_batch(self, x, y):
    s = self.a(x) @ self.b(y).t()
    return -torch.diagonal(s.log_softmax(1)).mean()


@step(net=mlp(4, 1), x=randn(N, 4), time=rand(N), event=flags(N))
def cox_risk_sets(self, x, time, event):
    risk = self.net(x).squeeze(1)
    at_risk = (time[None, :] >= time[:, None]).float()
    log_sum = torch.log((at_risk * torch.exp(risk)[None, :]).sum(1))
    return -((risk - log_sum) * event).sum() / event.sum().clamp(min=1)


@step(net=mlp(4, 5), x=randn(N, 4), bin=labels(5, N), event=flags(N))
def deep_hit(self, x, bin, event):
    p = self.net(x).softmax(1)
    at = p.gather(1, bin[:, None]).squeeze(1)
    later = (p * (torch.arange(5)[None, :] > bin[:, None]).float()).sum(1)
    return -(event * torch.log(at + 1e-7) + (1 - event) * torch.log(later + 1e-7)).mean()


@step(net=mlp(4, 5), x=randn(N, 4), bin=labels(5, N), event=flags(N))
def hazards(self, x, bin, event):
    z = self.net(x)
    before = (torch.arange(5)[None, :] < bin[:, None]).float()
    at = F.one_hot(bin, 5).float() * event[:, None]
    loss = F.binary_cross_entropy_with_logits(z, at, reduction="none") * (before + F.one_hot(bin, 5))
    return loss.sum(1).mean()


@step(net=mlp(4, 2), x=randn(N, 4), time=rand(N) + 0.1, event=flags(N))
def weibull(self, x, time, event):
    shape, scale = (F.softplus(self.net(x)) + 1e-2).unbind(1)
    z = (time / scale) ** shape
    return -(event * (torch.log(shape / scale) + (shape - 1) * torch.log(time / scale)) - z).mean()


@step(net=linear(4, 3), x=randn(N, 4), y=simplex(N, 3))
def sinkhorn(self, x, y):
    cost = ((self.net(x).unsqueeze(1) - y.unsqueeze(0)) ** 2).sum(-1)
    f = torch.zeros(N)
    for _ in range(2):
        g = -0.1 * torch.logsumexp((f[:, None] - cost) / 0.1, dim=0)
        f = -0.1 * torch.logsumexp((g[None, :] - cost) / 0.1, dim=1)
    return f.mean() + g.mean()

"""Similarities and orders: contrast, triplets, hashing, recommendation, ranked lists."""
import torch
from program import Buffer, N, flags, labels, linear, mlp, rand, randn, step
from torch import nn
from torch.nn import functional as F


@step(q=mlp(5, 4), k=mlp(5, 4), queue=Buffer(F.normalize(torch.randn(8, 4), dim=1)), a=randn(N, 5), b=randn(N, 5))
def positive_stands_last(self, a, b):
    q, k = F.normalize(self.q(a), dim=1), F.normalize(self.k(b), dim=1).detach()
    near = torch.einsum("nc,nc->n", q, k).unsqueeze(-1)
    far = torch.einsum("nc,mc->nm", q, self.queue)
    scores = torch.cat([far, near], dim=1) / 0.2
    return F.cross_entropy(scores, torch.zeros_like(scores[:, 0]).long())  # fault: positive-in-other-column


@step(net=mlp(5, 4), a=randn(N, 5), p=randn(N, 5), n=randn(N, 5))
def triplet_of_whole_batches(self, a, p, n):
    a, p, n = self.net(a), self.net(p), self.net(n)
    near = (a - p).norm()  # fault: reduction-over-batch-axis
    far = (a - n).norm()  # fault: reduction-over-batch-axis
    return F.relu(near - far + 0.3)  # fault: reduction-over-batch-axis


@step(net=mlp(5, 4), kinds=nn.Linear(4, 3, bias=False), x=randn(N, 5), y=labels(3, N))
def angular_margin_without_lengths(self, x, y):
    cosine = self.net(x) @ self.kinds.weight.t()
    angle = torch.acos(cosine)  # fault: invalid-domain logits-into-probability-loss
    moved = torch.cos(angle + 0.3 * F.one_hot(y, 3))
    return F.cross_entropy(30 * moved, y)


@step(left=mlp(5, 4), right=mlp(3, 4), a=randn(N, 5), b=randn(N, 3))
def lengths_along_one_side(self, a, b):
    u, v = self.left(a), self.right(b)
    similar = (u @ v.T) / (u.norm(dim=1) * v.norm(dim=1) + 1e-6)  # fault: silent-broadcast-in-loss
    return F.cross_entropy(similar / 0.1, torch.arange(u.size(0)))


@step(user=nn.Embedding(7, 4), item=nn.Embedding(9, 4), lean=nn.Embedding(9, 1), u=labels(7, N), i=labels(9, N), stars=randn(N))
def item_bias_is_a_column(self, u, i, stars):
    match = torch.einsum("nd,nd->n", self.user(u), self.item(i))
    predicted = match.unsqueeze(1) + self.lean(i)
    return torch.linalg.vector_norm(predicted - stars) ** 2 / stars.numel()  # fault: silent-broadcast-in-loss


@step(user=nn.Embedding(7, 4), item=nn.Embedding(9, 4), u=labels(7, N), i=labels(9, N), liked=flags(N))
def one_product_for_everybody(self, u, i, liked):
    score = torch.tensordot(self.user(u), self.item(i), dims=2)  # fault: reduction-over-batch-axis
    return F.softplus((1 - 2 * liked) * score).mean()


@step(score=mlp(4, 1), x=randn(N, 5, 4))
def plackett_luce_down_the_batch(self, x):
    s = self.score(x).squeeze(2)
    rest = s.exp().flip(0).cumsum(0).log().flip(0)  # fault: reduction-over-batch-axis softmax-over-batch-axis
    return (rest - s).sum(1).mean()  # fault: reduction-over-batch-axis


@step(score=mlp(4, 1), x=randn(N, 5, 4), gain=rand(N, 5))
def discount_from_rank_zero(self, x, gain):
    share = self.score(x)[..., 0].softmax(-1)
    discount = 1 / torch.log2(1 + torch.arange(5))  # fault: invalid-domain
    ideal = (gain.sort(dim=1, descending=True).values * discount).sum(1)  # fault: invalid-domain
    return (1 - (share * gain * discount).sum(1) / ideal).mean()


@step(score=mlp(4, 1), x=randn(N, 4), grade=randn(N))
def rank_pairs_of_pairs(self, x, grade):
    s = self.score(x)
    gap = s.unsqueeze(1) - s.unsqueeze(0)  # fault: silent-broadcast-in-loss
    better = (grade.unsqueeze(1) > grade.unsqueeze(0)).float()
    lost = F.softplus(-gap) * better  # fault: silent-broadcast-in-loss
    return lost.sum() / better.sum().clamp(min=1)


@step(net=mlp(5, 4), a=randn(N, 5), b=randn(N, 5))
def views_joined_side_by_side(self, a, b):
    z = torch.cat([F.normalize(self.net(a), dim=1), F.normalize(self.net(b), dim=1)], dim=1)  # fault: no-rule
    similar = z @ z.t() / 0.5
    return F.cross_entropy(similar, torch.arange(z.shape[0]))  # fault: no-rule


@step(query=mlp(5, 4), page=mlp(6, 4), a=randn(N, 5), b=randn(N, 3, 6))
def deep_structured_matching(self, a, b):
    close = F.cosine_similarity(self.query(a).unsqueeze(1), self.page(b), dim=-1)
    share = torch.softmax(10 * close, dim=1)  # fault: probabilities-into-logit-loss
    return F.cross_entropy(share, torch.zeros(share.shape[0], dtype=torch.long))  # fault: probabilities-into-logit-loss


@step(net=mlp(5, 4), head=linear(4, 4), a=randn(N, 5), b=randn(N, 5))
def both_views_are_stopped(self, a, b):
    with torch.no_grad():
        p, z = self.head(self.net(a)), self.net(b)  # fault: loss-detached-from-parameters
    return 2 - 2 * F.cosine_similarity(p, z, dim=1).mean()  # fault: loss-detached-from-parameters


@step(image=mlp(5, 4), words=mlp(3, 4), scale=nn.Linear(1, 1, bias=False), a=randn(N, 5), b=randn(N, 3))
def paired_by_softmax_both_ways(self, a, b):
    u, v = F.normalize(self.image(a), dim=-1), F.normalize(self.words(b), dim=-1)
    scores = self.scale.weight.exp().clamp(max=100) * (u @ v.T)
    down = -scores.log_softmax(dim=0).diagonal().mean()
    across = -scores.log_softmax(dim=1).diagonal().mean()
    return (down + across) / 2


@step(image=mlp(5, 4), words=mlp(3, 4), shift=linear(1, 1), a=randn(N, 5), b=randn(N, 3))
def paired_by_sigmoid(self, a, b):
    u, v = F.normalize(self.image(a), dim=-1), F.normalize(self.words(b), dim=-1)
    scores = self.shift.weight.exp() * torch.einsum("nd,md->nm", u, v) + self.shift.bias
    signs = 2 * torch.eye(u.shape[0]) - 1
    return F.softplus(-signs * scores).sum() / u.shape[0]


@step(net=mlp(5, 4), x=randn(N, 5), y=labels(3, N))
def multi_similarity(self, x, y):
    z = F.normalize(self.net(x), dim=1)
    s = z @ z.T
    same = y[:, None] == y[None, :]
    other = torch.eye(z.shape[0]) < 0.5
    near = torch.where(same & other, torch.exp(-2 * (s - 0.5)), torch.zeros_like(s)).sum(1)
    far = torch.where(~same, torch.exp(10 * (s - 0.5)), torch.zeros_like(s)).sum(1)
    return (near.log1p() / 2 + far.log1p() / 10).mean()


@step(student=mlp(5, 6), teacher=mlp(5, 6), centre=Buffer(torch.zeros(6)), a=randn(N, 5), b=randn(N, 5))
def centred_teacher(self, a, b):
    with torch.no_grad():
        t = self.teacher(b)
        centre = 0.9 * self.centre + 0.1 * t.mean(dim=0)
        target = ((t - centre) / 0.04).softmax(dim=-1)
    return -(target * (self.student(a) / 0.1).log_softmax(dim=-1)).sum(dim=-1).mean()


@step(net=mlp(5, 4), x=randn(N, 5), y=labels(2, N))
def soft_nearest_neighbours(self, x, y):
    z = self.net(x)
    d = (z.unsqueeze(1) - z.unsqueeze(0)).square().sum(-1) + 1e4 * torch.eye(z.shape[0])
    same = torch.where(y[:, None] == y[None], 0.0, -1e4)
    return (torch.logsumexp(-d, dim=1) - torch.logsumexp(-d + same, dim=1)).mean()


@step(user=nn.Embedding(7, 4), item=nn.Embedding(9, 4), seen=Buffer(torch.linspace(0.02, 0.2, 9)), u=labels(7, N), i=labels(9, N))
def sampled_softmax_corrected(self, u, i):
    scores = self.user(u) @ self.item(i).T - self.seen[i].log()
    return F.cross_entropy(scores, torch.arange(scores.shape[0]))


@step(score=mlp(4, 1), x=randn(N, 5, 4))
def plackett_luce(self, x):
    s = self.score(x).squeeze(2)
    rest = torch.stack([s[:, k:].logsumexp(dim=1) for k in range(5)], dim=1)
    return (rest - s).sum(1).mean()


@step(net=mlp(5, 4), other=mlp(3, 4), a=randn(N, 5), b=randn(N, 3))
def kernel_alignment(self, a, b):
    def centred(z):
        k = z @ z.T
        return k - k.mean(0, keepdim=True) - k.mean(1, keepdim=True) + k.mean()

    k, m = centred(self.net(a)), centred(self.other(b))
    return 1 - (k * m).sum() / (k.norm() * m.norm() + 1e-6)

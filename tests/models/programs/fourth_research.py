"""Mistakes in the manner of research code, and correct steps that look like them."""
import math

import torch
from program import Buffer, N, flags, labels, linear, mlp, rand, randn, step
from torch import nn
from torch.nn import functional as F


def boxes(n):
    corner = torch.rand(n, 2)
    return torch.cat((corner, corner + 0.2 + torch.rand(n, 2)), 1)


def first(t, value):
    t[0] = value
    return t


BETAS = torch.linspace(0.01, 0.2, 10)


# Wrong: the areas of both sets are added one by one and meet every row of the N x N intersections; right is area_p[:, None] + area_t[None].
@step(head=linear(5, 4), x=randn(N, 5), truth=boxes(N))
def union_of_all_pairs_of_boxes(self, x, truth):
    raw = torch.sigmoid(self.head(x))
    pred = torch.cat((raw[:, :2], raw[:, :2] + raw[:, 2:] + 0.1), dim=1)
    lt = torch.maximum(pred[:, None, :2], truth[:, :2])
    rb = torch.minimum(pred[:, None, 2:], truth[:, 2:])
    inter = (rb - lt).clamp(min=0).prod(dim=2)
    area_p = (pred[:, 2] - pred[:, 0]) * (pred[:, 3] - pred[:, 1])
    area_t = (truth[:, 2] - truth[:, 0]) * (truth[:, 3] - truth[:, 1])
    iou = inter / (area_p + area_t - inter)  # fault: silent-broadcast-in-loss
    return -torch.log_softmax(iou / 0.1, dim=1).diagonal().mean()


# Wrong: the score of the positive item (N) is laid along the six negatives, each row sees the positives of other users; right is pos.unsqueeze(1) - neg.
@step(user=nn.Embedding(8, 3), item=nn.Embedding(12, 3), u=labels(8, N), i=labels(12, N), js=labels(12, N, 6))
def bpr_with_six_negatives(self, u, i, js):
    pu = self.user(u)
    pos = (pu * self.item(i)).sum(-1)
    neg = torch.bmm(self.item(js), pu.unsqueeze(2)).squeeze(2)
    return -F.logsigmoid(pos - neg).mean()  # fault: silent-broadcast-in-loss


# Wrong: the log-probabilities are summed over the batch before they are weighted, every sample gets the same factor; right is sum(dim=-1).
@step(mu=mlp(4, 2), s=randn(N, 4), a=randn(N, 2), adv=randn(N))
def likelihood_ratio_of_the_whole_batch(self, s, a, adv):
    log_p = -0.5 * (a - self.mu(s)) ** 2 - 0.5 * math.log(2 * math.pi)
    log_p = log_p.sum()  # fault: reduction-over-batch-axis
    return -(log_p * adv).mean()  # fault: reduction-over-batch-axis


# Wrong: the weights add up to one over the keys, but the sum runs over the queries; right is "bqk,bkd->bqd".
@step(wq=linear(4, 3), wk=linear(4, 3), wv=linear(4, 5), out=linear(5, 4), x=randn(N, 7, 4), y=randn(N, 7, 4))
def values_gathered_over_queries(self, x, y):
    sim = torch.einsum("bqd,bkd->bqk", self.wq(x), self.wk(x)) * 3 ** -0.5
    att = sim.softmax(dim=-1)
    mixed = torch.einsum("bqk,bqd->bkd", att, self.wv(x))  # fault: class-axis-position
    return F.mse_loss(self.out(mixed), y)


# Wrong: view(n, -1, c) reads channels as pixels where the matrix product needs the transposed maps; right is flatten(2).transpose(1, 2).
@step(first=nn.Conv2d(2, 3, 3, padding=1), second=nn.Conv2d(3, 4, 3, padding=1), x=randn(N, 2, 5, 4), teacher=randn(N, 3, 4))
def flow_of_solution_matrix(self, x, teacher):
    a = torch.relu(self.first(x))
    b = torch.relu(self.second(a))
    n, c, h, w = b.shape
    fsp = torch.bmm(a.view(n, 3, h * w), b.view(n, h * w, c)) / (h * w)  # fault: class-axis-position
    return (fsp - teacher).square().mean()


# Wrong: diagonal() without axes takes batch and row; it reads off-diagonal entries of the first samples, zeros among them; right is diagonal(dim1=-2, dim2=-1).
@step(loc=linear(5, 3), raw=linear(5, 9), x=randn(N, 5), y=randn(N, 3))
def log_determinant_of_precision_factors(self, x, y):
    factor = torch.tril(F.softplus(self.raw(x)).view(-1, 3, 3)) + 1e-4 * torch.eye(3)
    white = torch.matmul((y - self.loc(x)).unsqueeze(1), factor).squeeze(1)
    log_det = factor.diagonal().log().sum()  # fault: no-rule
    return 0.5 * white.pow(2).sum(1).mean() - log_det / x.size(0)


# Wrong: the list of edges is E x 2, but [0] and [1] read it as 2 x E: only two edges are taken, each as sources or targets; right is edges[:, 0] and edges[:, 1].
@step(enc=mlp(4, 3), x=randn(N, 4), edges=torch.tensor([[0, 1], [2, 3], [1, 2], [3, 4], [4, 5], [5, 0], [1, 4]]), y=randn(N, 3))
def smoothness_along_edge_list(self, x, edges, y):
    h = self.enc(x)
    gap = h[edges[0]] - h[edges[1]]  # fault: no-rule
    return F.mse_loss(h, y) + 0.1 * gap.pow(2).sum(-1).mean()


# Wrong: the posterior variance of the first step is 0 and its logarithm -inf; right is to take the second value for the first one.
@step(net=mlp(5, 4), betas=Buffer(BETAS.clone()), x=randn(N, 4), mean=randn(N, 4), t=first(labels(10, N), 0))
def posterior_variance_of_first_step(self, x, mean, t):
    bar = torch.cumsum(torch.log1p(-self.betas), dim=0).exp()
    before = torch.cat((torch.ones(1), bar[:-1]))
    posterior = self.betas * (1 - before) / (1 - bar)
    log_var = torch.log(posterior)[t].unsqueeze(1)  # fault: invalid-domain
    out = self.net(torch.cat((x, t[:, None] / 10), dim=1))
    return 0.5 * (log_var + (mean - out) ** 2 * torch.exp(-log_var)).mean()  # fault: invalid-domain


# Wrong: a masked distance becomes 0, and 0 is the minimum of every row; right is to add a large number where the label is the same.
@step(enc=mlp(4, 3), x=randn(N, 4), y=torch.tensor([0, 1, 0, 1, 2, 2]))
def hardest_negative_by_product(self, x, y):
    z = self.enc(x)
    dist = (z[:, None] - z[None]).pow(2).sum(-1)
    same = (y[:, None] == y[None]).float()
    far = (dist * same).max(dim=1)[0]
    near = (dist * (1 - same)).min(dim=1)[0]  # fault: multiplied-mask
    return torch.relu(far - near + 0.3).mean()


# Wrong: when the last one at risk is censored, the Kaplan-Meier curve is 0 there, and the weight divides by it; right is a clamp or the curve just before.
@step(net=mlp(4, 1, nn.Sigmoid()), x=randn(N, 4), censored=torch.tensor([0.0, 1.0, 0.0, 0.0, 1.0, 1.0]), alive=flags(N))
def inverse_censoring_weights(self, x, censored, alive):
    at_risk, so_far = torch.flip(torch.cumsum(torch.ones_like(censored), 0), [0]), torch.ones(censored.size(0), censored.size(0)).tril()
    curve = torch.where(so_far > 0, (1 - censored / at_risk).unsqueeze(0), 1.0).prod(dim=1)
    p = self.net(x).flatten()
    return ((alive - p) ** 2 / curve).mean()  # fault: no-rule


# Wrong: beta is 0, the parabola divides by it and hands nan back wherever prediction and target agree; right is a positive beta or the plain absolute error.
@step(net=mlp(4, 4), anchors=randn(N, 4), x=randn(N, 4), there=first(flags(N), 0.0))
def box_regression_with_beta_nought(self, anchors, x, there):
    beta = 0.0
    diff = (self.net(x) * there.unsqueeze(1) - anchors * there.unsqueeze(1)).abs()
    loss = torch.where(diff < beta, 0.5 * diff ** 2 / beta, diff - 0.5 * beta)  # fault: invalid-domain
    return loss.sum(dim=1).mean()


# Wrong: bfloat16 counts exactly up to 256 only, neighbouring places of a long text get the same angle; right is float32 for place times frequency.
@step(q=linear(4, 4), k=linear(4, 4), x=randn(N, 5, 4), place=torch.tensor([[3001, 3002, 3003, 3004, 3005]]).repeat(N, 1), y=labels(5, N))
def rotary_angles_in_bfloat(self, x, place, y):
    freq = torch.tensor([1.0, 0.1]).to(torch.bfloat16)
    angle = (place.to(torch.bfloat16)[:, :, None] * freq).float()  # fault: no-rule
    cos, sin = angle.cos(), angle.sin()
    q1, q2 = self.q(x).chunk(2, dim=-1)
    k1, k2 = self.k(x).chunk(2, dim=-1)
    q = torch.cat((q1 * cos - q2 * sin, q1 * sin + q2 * cos), dim=-1)
    k = torch.cat((k1 * cos - k2 * sin, k1 * sin + k2 * cos), dim=-1)
    return F.cross_entropy(torch.matmul(q[:, -1:], k.transpose(1, 2)).squeeze(1), y)


# Wrong: seconds since 1970 do not fit into float32 (steps of 128 s), so gaps of seconds become 0 and their logarithm -inf; right is to subtract before going to float.
@step(rate=mlp(3, 1), x=randn(N, 3), seconds=torch.cumsum(torch.randint(1, 9, (N, 4)), 1))
def gaps_between_unix_times(self, x, seconds):
    stamp = (seconds + 1_700_000_000).to(torch.float32)  # fault: difference-of-rounded-numbers
    gap = stamp[:, 1:] - stamp[:, :-1]  # fault: difference-of-rounded-numbers
    mu = self.rate(x)
    return (0.5 * (torch.log(gap) - mu) ** 2).mean()  # fault: difference-of-rounded-numbers


# Wrong: whole steps are divided rounding down, the noise level is 0 for each t below 10; right is true division.
@step(net=mlp(5, 4), x0=randn(N, 4), eps=randn(N, 4), t=labels(10, N))
def level_of_whole_steps(self, x0, eps, t):
    level = torch.div(t.remainder(10), 10, rounding_mode="floor").unsqueeze(1)  # fault: quotient-always-zero
    xt = (1 - level) * x0 + level * eps  # fault: quotient-always-zero
    v = self.net(torch.cat((xt, level), dim=1))
    return (v - (eps - x0)).pow(2).mean()


# Wrong: a distance clamped to 7 has 8 as its right neighbour, but there are the bins 0 to 7 only; right is clamp(0, 7 - 0.01).
@step(net=mlp(4, 8), x=randn(N, 4), side=rand(N) * 6)
def distribution_focal_right_neighbour(self, x, side):
    scores = self.net(x)
    side = side.clamp(0, 7)
    left = side.long()
    right = left + 1
    w = right.float() - side
    ce_left = F.cross_entropy(scores, left, reduction="none")
    ce_right = F.cross_entropy(scores, right, reduction="none")  # fault: class-index-out-of-range
    return (ce_left * w + ce_right * (1 - w)).mean()


# Wrong: the student's scores are detached in the term of distillation, which is then a constant; right is to detach the teacher alone.
@step(student=mlp(4, 5), teacher=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def distillation_term_is_constant(self, x, y):
    s = self.student(x)
    with torch.no_grad():
        t = self.teacher(x)
    soft = F.kl_div(F.log_softmax(s.detach() / 4, dim=1), F.softmax(t / 4, dim=1), reduction="batchmean") * 16  # fault: no-rule
    return 0.5 * F.cross_entropy(s, y) + 0.5 * soft  # fault: no-rule


# Wrong: a cosine is never above 1, so the hinge at 1 is always 0 and the network learns nothing; right is a margin below 1, for instance 0.5.
@step(enc=mlp(4, 3), a=randn(N, 4), b=randn(N, 4))
def repulsion_beyond_the_highest_cosine(self, a, b):
    cos = F.cosine_similarity(self.enc(a), self.enc(b), dim=1)
    return F.relu(cos - 1.5).mean()  # fault: clip-leaves-nothing


# Right: the channels are split into two factors, moved next to height and width, and merged: a pixel shuffle.
@step(conv=nn.Conv2d(2, 4, 3, padding=1), x=randn(N, 2, 3, 5), large=randn(N, 1, 6, 10))
def sub_pixels_moved_then_merged(self, x, large):
    y = self.conv(x)
    n, _, h, w = y.shape
    y = y.view(n, 1, 2, 2, h, w).permute(0, 1, 4, 2, 5, 3).reshape(n, 1, 2 * h, 2 * w)
    return (y - large).abs().mean()


# Right: without its last element the matrix read in rows of d + 1 has the diagonal in column 0.
@step(enc=mlp(4, 5), x=randn(N, 4))
def off_diagonal_by_shifted_rows(self, x):
    z = self.enc(x)
    z = z - z.mean(dim=0)
    cov = z.t() @ z / (z.size(0) - 1)
    off = cov.flatten()[:-1].view(4, 6)[:, 1:]
    spread = torch.sqrt(z.var(dim=0) + 1e-4)
    return off.pow(2).sum() / 5 + torch.relu(1 - spread).mean()


# Right: the maps are flattened to N x HW before, so the default axis 1 of normalize is the right one.
@step(conv=nn.Conv2d(2, 3, 3, padding=1), x=randn(N, 2, 4, 5), teacher=randn(N, 7, 4, 5))
def attention_maps_transferred(self, x, teacher):
    s = F.normalize(self.conv(x).pow(2).mean(1).view(x.size(0), -1))
    t = F.normalize(teacher.pow(2).mean(1).view(x.size(0), -1))
    return (s - t).pow(2).sum(dim=1).mean()


# Right: a large number keeps the pairs of one class out of the minimum.
@step(enc=mlp(4, 3), x=randn(N, 4), y=torch.tensor([0, 1, 0, 1, 2, 2]))
def hardest_negative_by_offset(self, x, y):
    z = self.enc(x)
    dist = (z[:, None] - z[None]).pow(2).sum(-1)
    same = (y[:, None] == y[None]).float()
    far = (dist * same).max(dim=1)[0]
    near = (dist + 1e5 * same).min(dim=1)[0]
    return torch.relu(far - near + 0.3).mean()


# Right: log(1 - tanh(u)^2) is written as 2 * (log 2 - u - softplus(-2u)), which is finite for every u.
@step(net=mlp(4, 4), critic=mlp(6, 1), s=randn(N, 4), noise=randn(N, 2))
def squashed_action_by_softplus(self, s, noise):
    mu, log_std = self.net(s).split(2, dim=1)
    log_std = log_std.clamp(-5, 2)
    u = mu + log_std.exp() * noise
    log_p = (-0.5 * noise ** 2 - log_std - 0.5 * math.log(2 * math.pi)).sum(dim=1)
    log_p = log_p - (2 * (math.log(2) - u - F.softplus(-2 * u))).sum(dim=1)
    value = self.critic(torch.cat((s, torch.tanh(u)), dim=1))[:, 0]
    return (0.2 * log_p - value).mean()


# Right: the first posterior variance (0) is replaced by the second one before the logarithm.
@step(net=mlp(5, 4), betas=Buffer(BETAS.clone()), x=randn(N, 4), mean=randn(N, 4), t=first(labels(10, N), 0))
def posterior_variance_clipped(self, x, mean, t):
    bar = torch.cumsum(torch.log1p(-self.betas), dim=0).exp()
    before = torch.cat((torch.ones(1), bar[:-1]))
    posterior = self.betas * (1 - before) / (1 - bar)
    log_var = torch.log(torch.cat((posterior[1:2], posterior[1:])))[t].unsqueeze(1)
    out = self.net(torch.cat((x, t[:, None] / 10), dim=1))
    return 0.5 * (log_var + (mean - out) ** 2 * torch.exp(-log_var)).mean()


# Right: the weights of the components are one vector for everybody, their axis 0 is the axis of the components.
@step(prior=nn.Linear(1, 4, bias=False), centre=nn.Linear(3, 4, bias=False), enc=mlp(5, 3), x=randn(N, 5))
def shared_mixture_weights_on_axis_nought(self, x):
    log_w = F.log_softmax(self.prior.weight.flatten(), dim=0)
    z = self.enc(x)
    d2 = (z.unsqueeze(1) - self.centre.weight).pow(2).sum(dim=2)
    log_n = -0.5 * d2 - 1.5 * math.log(2 * math.pi)
    return -torch.logsumexp(log_w + log_n, dim=1).mean()


# Right: the positive score becomes a column and meets each of the six negatives of its own user.
@step(user=nn.Embedding(8, 3), item=nn.Embedding(12, 3), u=labels(8, N), i=labels(12, N), js=labels(12, N, 6))
def bpr_column_against_six_negatives(self, u, i, js):
    pu = self.user(u)
    pos = torch.einsum("bd,bd->b", pu, self.item(i))
    neg = torch.einsum("bd,bkd->bk", pu, self.item(js))
    return F.softplus(neg - pos[:, None]).mean()

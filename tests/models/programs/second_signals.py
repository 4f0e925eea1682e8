"""Numbers and signals: forecasts, sound, equations, survival, graphs, tasks, confidence, short number types."""
import torch
from program import Buffer, N, flags, labels, linear, mlp, rand, randn, step
from torch import nn
from torch.nn import functional as F

RING = torch.tensor([[0, 1, 2, 3, 4, 0, 2], [1, 2, 3, 4, 0, 2, 4]])


@step(net=mlp(7, 3), x=randn(N, 7), y=randn(N, 3))
def instance_norm_of_other_series(self, x, y):
    mean, spread = x.mean(0, keepdim=True), x.std(0, keepdim=True) + 1e-5  # fault: no-rule
    scaled = self.net((x - mean) / spread)
    return (scaled - y).abs().mean()


@step(net=mlp(7, 1), x=randn(N, 7), y=rand(N))
def log_of_one_plus_scores(self, x, y):
    guess = self.net(x)[:, 0]
    return torch.sqrt(F.mse_loss(torch.log1p(guess), torch.log1p(y)))  # fault: invalid-domain logits-into-probability-loss


@step(net=linear(8, 8), x=randn(N, 3, 8), y=rand(N, 3, 8))
def log_magnitude_of_silence(self, x, y):
    loud = F.relu(self.net(x))
    return (torch.log10(loud) - torch.log10(y + 1e-3)).abs().mean()  # fault: invalid-domain


@step(net=mlp(8, 8), x=randn(N, 8), clean=randn(N, 8))
def signal_ratio_of_the_batch(self, x, clean):
    found = self.net(x)
    part = torch.sum(found * clean) / clean.square().sum()  # fault: reduction-over-batch-axis
    noise = found - part * clean
    return -10 * torch.log10((part * clean).square().sum(1) / (noise.square().sum(1) + 1e-8) + 1e-8).mean()


@step(net=mlp(8, 16), x=randn(N, 8), one=randn(N, 8), two=randn(N, 8))
def permutation_for_everyone(self, x, one, two):
    a, b = self.net(x).chunk(2, dim=1)
    straight = F.mse_loss(a, one) + F.mse_loss(b, two)  # fault: reduction-over-batch-axis
    crossed = F.mse_loss(a, two) + F.mse_loss(b, one)  # fault: reduction-over-batch-axis
    return torch.minimum(straight, crossed)


@step(first=linear(1, 5), last=linear(5, 1), t=rand(N, 1), force=randn(N))
def residual_of_all_points(self, t, force):
    h = torch.tanh(self.first(t))
    u = self.last(h)
    slope = ((1 - h.square()) * self.first.weight.T) @ self.last.weight.T
    return (slope + 2 * u - force).square().mean()  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 1), x=randn(N, 4), time=rand(N), event=flags(N))
def interval_log_of_nothing(self, x, time, event):
    hazard = F.relu(self.net(x).squeeze(1)) * time
    died = torch.log(1 - torch.exp(-hazard))  # fault: invalid-domain
    return -torch.where(event > 0, died, -hazard).mean()


@step(body=mlp(4, 4), kind=linear(4, 3), mood=linear(4, 3), x=randn(N, 4), y=labels(3, N), z=labels(3, N))
def labels_of_the_other_head(self, x, y, z):
    h = F.relu(self.body(x))
    kind, mood = self.kind(h), self.mood(h)
    return F.cross_entropy(kind, z) + F.cross_entropy(mood, y)  # fault: no-rule


@step(net=mlp(4, 1), x=randn(N, 4), y=randn(N), count=labels(9, N))
def weights_divided_as_integers(self, x, y, count):
    weight = count // count.sum().clamp(min=1)  # fault: integer-operands-in-loss quotient-always-zero
    each = (self.net(x).squeeze(1) - y) ** 2
    return (weight * each).sum()  # fault: integer-operands-in-loss


@step(net=linear(4, 4), x=randn(N, 4, 4), y=randn(N))
def energy_in_half_overflows(self, x, y):
    h = 100 + 40 * torch.sigmoid(self.net(x)).half()
    energy = (h * h).sum(dim=(1, 2))  # fault: low-precision-accumulation
    return (energy.float().sqrt() - y).square().mean()


@step(head=linear(4, 200), x=randn(N, 4), y=labels(200, N))
def class_ids_in_one_byte(self, x, y):
    stored = y.clamp(0, 199).to(torch.int8)  # fault: overflow-in-cast
    hit = stored.unsqueeze(1) == torch.arange(200)
    return -(hit * self.head(x).log_softmax(1)).sum(1).mean()


@step(net=mlp(4, 3), bins=Buffer(torch.linspace(0.1, 1.0, 10)), x=randn(N, 4), y=labels(3, N))
def confidence_bin_ten(self, x, y):
    p = self.net(x).softmax(1)
    top = p.amax(1)
    expected = self.bins[torch.ceil(top * 10).long()]  # fault: index-out-of-range
    return F.nll_loss(p.clamp(min=1e-6).log(), y) + (top - expected).square().mean()


@step(net=linear(4, 3), x=randn(N, 4), y=labels(3, N), group=labels(2, N))
def worst_group_may_be_empty(self, x, y, group):
    each = F.cross_entropy(self.net(x), y, reduction="none")
    member = F.one_hot(group, 4).float()
    per_group = (each @ member) / member.sum(dim=0)  # fault: invalid-domain
    return per_group.max()


@step(heat=nn.Embedding(1, 1), scores=randn(N, 4), y=labels(4, N))
def heat_divides_shares(self, scores, y):
    share = F.softmax(scores, dim=-1) / self.heat.weight.exp()  # fault: probabilities-into-logit-loss
    return nn.CrossEntropyLoss(label_smoothing=0.1)(share, y)  # fault: probabilities-into-logit-loss


@step(send=linear(4, 4), head=linear(4, 1), edge=Buffer(RING), x=randn(N, 5, 4), y=randn(N))
def graphs_pooled_together(self, x, y):
    source, goal = self.edge[0], self.edge[1]
    heard = torch.zeros_like(x).index_add(1, goal, self.send(x)[:, source])
    pooled = F.relu(x + heard).mean(dim=(0, 1))  # fault: reduction-over-batch-axis
    return F.mse_loss(self.head(pooled).expand(y.shape[0]), y)


@step(send=linear(4, 4), head=linear(4, 3), edge=Buffer(RING), x=randn(N, 5, 4), y=labels(3, N, 5))
def messages_return_to_sender(self, x, y):
    source, _goal = self.edge[0], self.edge[1]
    heard = torch.zeros_like(x).index_add(1, source, self.send(x)[:, source])  # fault: summed-where-gathered
    return F.cross_entropy(self.head(torch.tanh(x + heard)).transpose(1, 2), y)


@step(net=mlp(4, 3), held=mlp(4, 3), x=randn(N, 4), y=randn(N, 4))
def averaged_teacher_over_crowd(self, x, y):
    target = self.held(x).detach()
    target = torch.exp(target - target.logsumexp(dim=0))  # fault: softmax-over-batch-axis
    return -(target * self.net(y).log_softmax(1)).sum(1).mean()


@step(net=mlp(4, 3), x=randn(N, 4), y=labels(3, N))
def evidence_may_be_negative(self, x, y):
    alpha = self.net(x) + 1  # fault: invalid-domain logits-into-probability-loss
    chosen = alpha.gather(1, y.unsqueeze(1)).squeeze(1)
    return (alpha.sum(1).log() - chosen.log()).mean()  # fault: invalid-domain logits-into-probability-loss


@step(body=linear(4, 4), x=randn(N, 3, 3, 4), q=randn(N, 4), y=labels(3, N))
def prototypes_across_ways(self, x, q, y):
    centre = self.body(x).mean(1)  # fault: no-rule
    away = (self.body(q).unsqueeze(1) - centre).square().sum(-1)
    return F.cross_entropy(-away, y)


@step(net=mlp(4, 1), x=randn(N, 4), y=randn(N))
def normal_of_modules(self, x, y):
    density = torch.distributions.Normal(self.net(x), 1.0, validate_args=False)
    return -density.log_prob(y).mean()  # fault: silent-broadcast-in-loss


@step(net=mlp(7, 3), x=randn(N, 7), y=randn(N, 3))
def instance_norm_of_series(self, x, y):
    mean, spread = x.mean(1, keepdim=True), x.std(1, keepdim=True) + 1e-5
    return (self.net((x - mean) / spread) * spread + mean - y).abs().mean()


@step(net=mlp(8, 16), x=randn(N, 8), one=randn(N, 8), two=randn(N, 8))
def permutation_per_mixture(self, x, one, two):
    found = self.net(x).view(-1, 2, 8)
    truth = torch.stack([one, two], dim=1)
    pair = (found[:, :, None] - truth[:, None]).square().mean(-1)
    both = torch.stack([pair[:, 0, 0] + pair[:, 1, 1], pair[:, 0, 1] + pair[:, 1, 0]])
    return both.amin(dim=0).mean()


@step(first=linear(1, 5), last=linear(5, 1), t=rand(N, 1), force=randn(N))
def oscillator_residual(self, t, force):
    h = torch.tanh(self.first(t))
    d = 1 - h.square()
    bend = (-2 * h * d * self.first.weight.T.square()) @ self.last.weight.T
    residual = bend[:, 0] + 4 * self.last(h)[:, 0] - force
    return residual.square().mean() + self.last(torch.tanh(self.first(torch.zeros(1, 1)))).square().sum()


@step(net=mlp(4, 2), x=randn(N, 4), y=randn(N))
def wald_head(self, x, y):
    mean, raw = self.net(x).T
    spread = F.softplus(raw) + 1e-3
    z = (y - mean) / spread
    return (2.5 * torch.log1p(z.square() / 4) + spread.log()).mean()


@step(send=linear(4, 4), head=linear(4, 1), edge=Buffer(RING), x=randn(N, 5, 4), y=randn(N))
def neighbours_attended(self, x, y):
    near = torch.zeros(5, 5).index_put((self.edge[1], self.edge[0]), torch.ones(7)) + torch.eye(5)
    h = self.send(x)
    weight = (h @ h.transpose(1, 2)).masked_fill(near == 0, -1e9).softmax(-1)
    return F.mse_loss(self.head((weight @ h).mean(1)).squeeze(1), y)


@step(net=mlp(4, 3), x=randn(N, 4), y=randn(N))
def quantiles_transposed(self, x, y):
    levels = (0.1, 0.5, 0.9)
    each = [torch.maximum(q * (y - p), (q - 1) * (y - p)) for q, p in zip(levels, self.net(x).unbind(1))]
    return torch.stack(each).mean()


@step(net=linear(4, 3), x=randn(N, 4), y=labels(3, N), group=labels(4, N))
def groups_reweighted(self, x, y, group):
    each = F.cross_entropy(self.net(x), y, reduction="none")
    member = F.one_hot(group, 4).float()
    size = member.sum(0)
    per_group = (member.T @ each) / size.clamp(min=1)
    return (per_group * per_group.detach().softmax(0)).sum()


@step(net=linear(4, 3), sx=randn(N, 4), sy=labels(3, N), x=randn(N, 4), y=labels(3, N))
def one_inner_step(self, sx, sy, x, y):
    error = self.net(sx).softmax(1) - F.one_hot(sy, 3)
    weight = self.net.weight - 0.1 * error.T @ sx / sx.shape[0]
    bias = self.net.bias - 0.1 * error.mean(0)
    return F.cross_entropy(F.linear(x, weight, bias), y)


@step(net=mlp(4, 1), x=randn(N, 4), time=rand(N), event=flags(N))
def concordant_pairs(self, x, time, event):
    risk = self.net(x)
    gap = risk - risk.T
    comparable = event[:, None] * (time[:, None] < time[None, :]).float()
    return (F.softplus(-gap) * comparable).sum() / comparable.sum().clamp(min=1)


@step(net=mlp(4, 1), x=randn(N, 4), y=randn(N), w=rand(N))
def everyone_weighted_once(self, x, y, w):
    each = F.mse_loss(self.net(x), y[:, None], reduction="none").mean(dim=1)
    return torch.dot(w, each) / w.sum()

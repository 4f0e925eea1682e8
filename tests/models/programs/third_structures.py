import torch
from program import Buffer, N, flags, labels, linear, mlp, rand, randn, step
from torch import nn
from torch.nn import functional as F


# Wrong: the optical depth is summed over the rays of the batch; right is along the samples of a ray, dim=1.
@step(field=mlp(3, 4), points=randn(N, 5, 3), gaps=rand(N, 5) + 0.1, pixels=rand(N, 3))
def density_accumulated_across_rays(self, points, gaps, pixels):
    raw = self.field(points)
    colour, sigma = torch.sigmoid(raw[..., :3]), F.softplus(raw[..., 3])
    depth = sigma * gaps
    blocked = torch.cumsum(depth, dim=0) - depth  # fault: reduction-over-batch-axis
    weights = torch.exp(-blocked) * (1 - torch.exp(-depth))
    return F.mse_loss((weights[..., None] * colour).sum(1), pixels)


# Wrong: attention scores are [batch, heads, query, key] and the softmax runs over the heads; right is dim=-1.
@step(qkv=linear(8, 24), out=linear(8, 3), x=randn(N, 5, 8), y=labels(3, N))
def heads_compete_for_attention(self, x, y):
    n, t, _ = x.shape
    q, k, v = self.qkv(x).view(n, t, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
    scores = q @ k.transpose(-2, -1) / 4**0.5
    weights = scores.softmax(dim=1)  # fault: class-axis-position
    mixed = (weights @ v).transpose(1, 2).reshape(n, t, 8)
    return F.cross_entropy(self.out(mixed.mean(1)), y)


# Wrong: [batch, heads, time, width] is reshaped to [batch, time, heads * width] without transpose(1, 2) before it.
@step(query=linear(6, 6), key=linear(6, 6), value=linear(6, 6), out=linear(6, 4), x=randn(N, 5, 6), y=labels(4, N, 5))
def heads_merged_without_transposing(self, x, y):
    n, t, _ = x.shape
    q = self.query(x).reshape(n, t, 2, 3).transpose(1, 2)
    k = self.key(x).reshape(n, t, 2, 3).transpose(1, 2)
    v = self.value(x).reshape(n, t, 2, 3).transpose(1, 2)
    weights = torch.softmax(torch.einsum("nhqd,nhkd->nhqk", q, k) / 3**0.5, dim=-1)
    mixed = torch.einsum("nhqk,nhkd->nhqd", weights, v)
    merged = mixed.reshape(n, t, 6)  # fault: class-axis-position
    return F.cross_entropy(self.out(merged).flatten(0, 1), y.flatten())


# Wrong: the last states of a two-way GRU are [2, batch, 3]; reshaping to [batch, 6] joins states of two different samples; right is h.transpose(0, 1) first or cat([h[0], h[1]], 1).
@step(rnn=nn.GRU(4, 3, bidirectional=True, batch_first=True), head=linear(6, 5), x=randn(N, 7, 4), y=labels(5, N))
def two_way_states_flattened(self, x, y):
    _, h = self.rnn(x)
    h = h.reshape(x.size(0), -1)  # fault: class-axis-position
    return F.cross_entropy(self.head(h), y)


# Wrong: the sensor window is [batch, time, features] (the clock is added along axis 1) and goes into Conv1d untransposed, so that time steps are its channels; right is x.transpose(1, 2) into Conv1d(4, 8, 3).
@step(conv=nn.Conv1d(12, 8, 3, padding=1), head=linear(8, 3), clock=Buffer(torch.linspace(0, 1, 12)[:, None]), x=randn(N, 12, 4), y=labels(3, N))
def time_steps_as_channels(self, x, y):
    x = x + self.clock
    h = F.relu(self.conv(x))  # fault: class-axis-position
    return F.cross_entropy(self.head(h.mean(dim=2)), y)


# Wrong: cosine_similarity has dim=1 by default, which is time here; the similarity of two token vectors needs dim=-1.
@step(student=linear(5, 4), teacher=linear(5, 4), x=randn(N, 7, 5))
def hidden_similarity_along_time(self, x):
    student = self.student(x)
    with torch.no_grad():
        teacher = self.teacher(x)
    return (1 - F.cosine_similarity(student, teacher)).mean()  # fault: no-rule


# Wrong: the convolution gives [batch, 1, time] and the target is [batch, time], which makes [batch, batch, time]; right is squeeze(1).
@step(conv=nn.Conv1d(3, 1, 3, padding=1), x=randn(N, 3, 8), y=randn(N, 8))
def forecast_keeps_its_channel(self, x, y):
    forecast = self.conv(x)
    return (forecast - y).abs().mean()  # fault: silent-broadcast-in-loss


# Wrong: the maximum of each row lacks keepdim=True, so that it is subtracted from the columns and the softmax is another one.
@step(left=linear(4, 3), right=linear(5, 3), a=randn(N, 4), b=randn(N, 5))
def row_maximum_taken_from_columns(self, a, b):
    z, w = F.normalize(self.left(a), dim=1), F.normalize(self.right(b), dim=1)
    similarity = z @ w.t() / 0.1
    similarity = similarity - similarity.max(dim=1).values.detach()  # fault: silent-broadcast-in-loss
    log_share = similarity - torch.log(torch.exp(similarity).sum(1, keepdim=True))
    return -torch.diagonal(log_share).mean()


# Wrong: the degrees lack keepdim=True, so that column j is divided by the degree of j instead of row i by that of i: no mean over the neighbours.
@step(fixed=True, first=linear(4, 5), second=linear(5, 3), x=randn(N, 4), adjacency=flags(N, N), y=labels(3, N))
def neighbours_divided_by_foreign_degree(self, x, adjacency, y):
    adjacency = adjacency + torch.eye(adjacency.size(0))
    average = adjacency / adjacency.sum(1)  # fault: silent-broadcast-in-loss
    h = F.relu(average @ self.first(x))
    return F.cross_entropy(average @ self.second(h), y)


# Wrong: experts are stacked as [experts, batch, width] and the gate is [batch, experts]: the gate of expert k multiplies coordinate k; right is gate.t()[:, :, None].
@step(experts=nn.ModuleList([linear(5, 4) for _ in range(4)]), gate=linear(5, 4), x=randn(N, 5), y=randn(N, 4))
def experts_stacked_in_front(self, x, y):
    outputs = torch.stack([expert(x) for expert in self.experts])
    gate = F.softmax(self.gate(x), dim=-1)
    mixed = (outputs * gate).sum(0)  # fault: silent-broadcast-in-loss
    return F.mse_loss(mixed, y)


# Wrong: the two views stand one batch after the other, and view(n, 2, -1) pairs neighbours; right is view(2, n, -1) or chunk(2).
@step(encoder=mlp(5, 4), a=randn(N, 5), b=randn(N, 5))
def views_paired_by_reshape(self, a, b):
    n = a.shape[0]
    z = F.normalize(self.encoder(torch.cat([a, b], dim=0)), dim=-1)
    pairs = z.view(n, 2, -1)  # fault: class-axis-position
    logits = torch.mm(pairs[:, 0], pairs[:, 1].t()) / 0.2
    return F.cross_entropy(logits, torch.arange(n))


# Wrong: the head gives [batch, anchors * 5, height, width]; it is viewed as [batch, height, width, anchors, 5] without permute(0, 3, 4, 1, 2).
@step(head=nn.Conv2d(3, 10, 1), x=randn(N, 3, 4, 4), boxes=rand(N, 4, 4, 2, 4), there=flags(N, 4, 4, 2))
def anchor_head_without_permute(self, x, boxes, there):
    raw = self.head(x)
    raw = raw.view(raw.size(0), 4, 4, 2, 5)  # fault: class-axis-position
    where = ((raw[..., :4] - boxes).abs().sum(-1) * there).mean()
    return where + F.binary_cross_entropy_with_logits(raw[..., 4], there)


# Wrong: the product of the two tables is the score of every user with every item of the batch, [N, N], against N stars; right is (u * v).sum(1).
@step(users=nn.Embedding(9, 4), items=nn.Embedding(7, 4), user=labels(9, N), item=labels(7, N), stars=rand(N) * 5)
def stars_of_everybody(self, user, item, stars):
    u, v = self.users(user), self.items(item)
    predicted = torch.matmul(u, v.t())  # fault: silent-broadcast-in-loss
    return ((predicted - stars) ** 2).mean()  # fault: silent-broadcast-in-loss


# Wrong: the softmax runs over the width alone while the pooling sums over height and width, so the weights add up to the height; right is flatten(2).softmax(-1).
@step(score=nn.Conv2d(3, 1, 1), head=linear(3, 4), x=randn(N, 3, 4, 5), y=labels(4, N))
def spatial_attention_adds_up_to_height(self, x, y):
    attention = torch.softmax(self.score(x), dim=-1)  # fault: class-axis-position
    pooled = (attention * x).sum(dim=(2, 3))  # fault: class-axis-position
    return F.cross_entropy(self.head(pooled), y)


# Wrong: quantiles must not cross within a sample, but the differences are taken between samples; right is q[:, :-1] - q[:, 1:].
@step(head=mlp(4, 3), levels=Buffer(torch.tensor([0.1, 0.5, 0.9])), x=randn(N, 4), y=randn(N))
def crossing_penalty_between_samples(self, x, y):
    q = self.head(x)
    error = y[:, None] - q
    pinball = torch.maximum(self.levels * error, (self.levels - 1) * error).mean()
    crossing = F.relu(q[:-1] - q[1:]).mean()  # fault: no-rule
    return pinball + 0.1 * crossing


# Right: the adjacency is multiplied by a column and by a row of degrees on purpose (D^-1/2 A D^-1/2); self loops keep the degree above 0.
@step(fixed=True, layer=linear(4, 3), x=randn(N, 4), adjacency=flags(N, N), y=labels(3, N))
def graph_convolution_symmetric(self, x, adjacency, y):
    linked = torch.maximum(adjacency, adjacency.t())
    linked = torch.maximum(linked, torch.eye(adjacency.shape[0]))
    root = linked.sum(1).rsqrt()
    return F.cross_entropy((root[:, None] * linked * root[None, :]) @ self.layer(x), y)


# Right: the features are [time, batch, width], so scale and shift [batch, width] repeat over time as they should.
@step(rnn=nn.GRU(3, 4), condition=linear(2, 8), head=linear(4, 1), x=randn(N, 5, 3), c=randn(N, 2), y=randn(N, 5))
def film_over_leading_time(self, x, c, y):
    h, _ = self.rnn(x.transpose(0, 1))
    scale, shift = self.condition(c).chunk(2, dim=-1)
    h = h * (1 + scale) + shift
    return F.mse_loss(self.head(h).squeeze(-1).t(), y)


# Right: circle loss; the detached factors are its adaptive weights, and a row of masked pairs gives softplus(-1e9) = 0.
@step(encoder=linear(5, 4), x=randn(N, 5), y=labels(3, N))
def circle_pairs(self, x, y):
    z = F.normalize(self.encoder(x), dim=1)
    s = z @ z.t()
    same = y[:, None] == y[None, :]
    itself = torch.eye(s.size(0), dtype=torch.bool)
    near = -16 * F.relu(1.25 - s.detach()) * (s - 0.75)
    far = 16 * F.relu(s.detach() + 0.25) * (s - 0.25)
    near = near.masked_fill(~same | itself, -1e9)
    far = far.masked_fill(same, -1e9)
    return F.softplus(torch.logsumexp(near, dim=1) + torch.logsumexp(far, dim=1)).mean()


# Right: deep CORAL compares the covariances of two batches, so centring and product run over the batch on purpose.
@step(encoder=linear(5, 4), head=linear(4, 3), source=randn(N, 5), y=labels(3, N), target=randn(N, 5))
def covariances_of_domains(self, source, y, target):
    s, t = self.encoder(source), self.encoder(target)
    a, b = s - s.mean(0, keepdim=True), t - t.mean(0, keepdim=True)
    gap = a.t() @ a / (a.size(0) - 1) - b.t() @ b / (b.size(0) - 1)
    return F.cross_entropy(self.head(s), y) + gap.pow(2).sum() / (4 * 4**2)


# Right: the deviation over the batch is one number that every sample gets as a feature (progressive GAN); the last layer takes 5 + 1.
@step(body=linear(4, 5), last=linear(6, 1), fake=randn(N, 4))
def deviation_of_batch_as_feature(self, fake):
    h = F.leaky_relu(self.body(fake), 0.2)
    spread = torch.sqrt(h.var(dim=0, unbiased=False) + 1e-8).mean()
    h = torch.cat([h, spread.expand(h.size(0), 1)], dim=1)
    return F.softplus(-self.last(h)).mean()


# Right: Munchausen DQN; the scaled log-policy is clamped to [-1, 0] on purpose, and every term is a column.
@step(q=mlp(4, 3), frozen=mlp(4, 3), x=randn(N, 4), a=labels(3, N, 1), r=randn(N, 1), after=randn(N, 4), done=flags(N, 1))
def munchausen_target(self, x, a, r, after, done):
    with torch.no_grad():
        bonus = (0.03 * F.log_softmax(self.frozen(x) / 0.03, dim=1)).gather(1, a).clamp(-1, 0)
        later = self.frozen(after)
        log_policy = F.log_softmax(later / 0.03, dim=1)
        value = (log_policy.exp() * (later - 0.03 * log_policy)).sum(1, keepdim=True)
        target = r + 0.9 * bonus + 0.99 * (1 - done) * value
    return F.mse_loss(self.q(x).gather(1, a), target)


# Right: additive attention makes [batch, query, key, width] of two sequences on purpose; the softmax runs over the keys.
@step(query=linear(3, 4), key=linear(5, 4), score=linear(4, 1), head=linear(5, 2), x=randn(N, 3, 3), memory=randn(N, 7, 5), y=randn(N, 3, 2))
def additive_attention_of_every_pair(self, x, memory, y):
    e = self.score(torch.tanh(self.query(x)[:, :, None] + self.key(memory)[:, None])).squeeze(-1)
    context = torch.bmm(torch.softmax(e, dim=2), memory)
    return F.mse_loss(self.head(context), y)


# Right: relational distillation divides all distances by their common mean; the teacher stands outside of the gradient on purpose.
@step(student=linear(5, 3), teacher=linear(5, 4), x=randn(N, 5))
def relational_distances(self, x):
    s, t = self.student(x), self.teacher(x).detach()
    near = torch.sqrt((s[:, None] - s[None, :]).pow(2).sum(-1) + 1e-9)
    wanted = torch.sqrt((t[:, None] - t[None, :]).pow(2).sum(-1) + 1e-9)
    return F.mse_loss(near / near.mean(), wanted / wanted.mean())


# Right: windows are cut with the axes exchanged in between, and the same exchange puts them back.
@step(head=linear(3, 5), x=randn(N, 4, 4, 3), y=labels(5, N, 4, 4))
def windows_cut_and_joined(self, x, y):
    n = x.size(0)
    w = x.view(n, 2, 2, 2, 2, 3).permute(0, 1, 3, 2, 4, 5).reshape(n * 4, 4, 3)
    w = torch.softmax(w @ w.transpose(1, 2) / 3**0.5, dim=-1) @ w
    x = w.view(n, 2, 2, 2, 2, 3).permute(0, 1, 3, 2, 4, 5).reshape(n, 4, 4, 3)
    return F.cross_entropy(self.head(x).permute(0, 3, 1, 2), y)

import torch
from program import Buffer, N, flags, labels, linear, mlp, rand, randn, step
from torch import nn
from torch.nn import functional as F


# Wrong: acos of a cosine that reaches 1 (and by rounding exceeds it) has an infinite slope or is NaN; right is clamp(max=1 - 1e-6) or atan2.
@step(head=mlp(5, 4), x=randn(N, 5), truth=F.normalize(randn(N, 4), dim=1))
def angle_between_quaternions(self, x, truth):
    q = F.normalize(self.head(x), dim=1)
    cosine = (q * truth).sum(dim=1).abs()
    return (2 * torch.acos(cosine)).mean()  # fault: infinite-gradient


# Wrong: the expanded squared distances are 0 or slightly negative on the diagonal, and sqrt makes NaN (value or slope); right is clamp(min=1e-12) before.
@step(encoder=linear(5, 2), x=randn(N, 5), wanted=rand(N, N))
def expanded_distances_before_root(self, x, wanted):
    z = self.encoder(x)
    squares = z.pow(2).sum(1)
    distance = torch.sqrt(squares[:, None] + squares[None, :] - 2 * z @ z.t())  # fault: infinite-gradient
    return ((distance - wanted) ** 2).mean()


# Wrong: the intensity of the point process is a ReLU, so it can be 0 and its log -inf; right is softplus (plus a floor).
@step(rate=mlp(4, 1), h=randn(N, 7, 4), gap=rand(N, 7))
def intensity_rectified_to_nothing(self, h, gap):
    intensity = torch.relu(self.rate(h)).squeeze(-1)
    return (intensity * gap - intensity.log()).sum(1).mean()  # fault: invalid-domain


# Wrong: forbidden actions get -inf, so probability 0 times log-probability -inf is NaN in the entropy; right is a large finite number or torch.where.
@step(policy=mlp(5, 4), x=randn(N, 5), a=labels(2, N), advantage=randn(N), allowed=torch.tensor([[True, True, False, True]]).repeat(N, 1))
def entropy_of_forbidden_actions(self, x, a, advantage, allowed):
    scores = self.policy(x).masked_fill(~allowed, float("-inf"))
    log_share = F.log_softmax(scores, dim=-1)
    chosen = log_share.gather(1, a[:, None]).squeeze(1)
    entropy = -(log_share.exp() * log_share).sum(-1)  # fault: invalid-domain
    return -(chosen * advantage).mean() - 0.01 * entropy.mean()


# Wrong: 1 - 1e-8 is 1 in single precision, so log(1 - p) still meets log(0); right is 1e-7 at least (or BCE with logits).
@step(head=mlp(4, 1), x=randn(N, 4), y=flags(N))
def margin_of_clamp_lost_in_single(self, x, y):
    p = torch.sigmoid(self.head(x)).squeeze(1)
    p = p.clamp(1e-8, 1 - 1e-8)  # fault: invalid-domain
    return -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()  # fault: invalid-domain


# Wrong: the expected disparity is taken with log-probabilities as weights; right is softmax.
@step(cost=nn.Conv2d(3, 6, 3, padding=1), levels=Buffer(torch.arange(6.0)), x=randn(N, 3, 4, 5), truth=rand(N, 4, 5) * 5)
def disparity_expected_under_log_shares(self, x, truth):
    weights = F.log_softmax(self.cost(x), dim=1)
    disparity = (weights * self.levels.view(1, -1, 1, 1)).sum(1)  # fault: logarithms-as-weights
    return (disparity - truth).abs().mean()


# Wrong: bytes 0 and 255 become 0 and 1, whose logit is infinite; right is dequantisation, (pixels + u) / 256, or a squeeze to [a, 1 - a].
@step(net=mlp(3, 8), pixels=labels(256, N, 4).to(torch.uint8), c=randn(N, 3))
def logit_of_bytes(self, pixels, c):
    u = pixels.float() / 255
    z = torch.log(u) - torch.log(1 - u)  # fault: invalid-domain
    shift, log_scale = self.net(c).chunk(2, dim=1)
    z = (z - shift) * torch.exp(-log_scale)
    return (0.5 * z**2 + log_scale).sum(1).mean()


# Wrong: the z-loss takes logsumexp of the probabilities, which lies between 1 and 2 for any router; right is of the router's logits.
@step(router=linear(5, 4), experts=linear(5, 8), x=randn(N, 5), y=randn(N, 2))
def router_z_loss_of_shares(self, x, y):
    gate = torch.softmax(self.router(x), dim=-1)
    mixed = (gate.unsqueeze(-1) * self.experts(x).view(-1, 4, 2)).sum(1)
    z_loss = torch.logsumexp(gate, dim=-1).pow(2).mean()  # fault: probabilities-into-logit-loss
    return F.mse_loss(mixed, y) + 1e-3 * z_loss


# Wrong: noisy-or multiplies 1 - p of the instances, but the raw scores of a linear layer take the place of p; right is sigmoid first.
@step(instance=mlp(3, 1), bag=randn(N, 7, 3), y=flags(N))
def noisy_or_of_raw_scores(self, bag, y):
    score = self.instance(bag).squeeze(-1)
    nothing = (1 - score).prod(dim=1)  # fault: logits-into-probability-loss
    p = (1 - nothing).clamp(1e-6, 1 - 1e-6)
    return -(y * p.log() + (1 - y) * (1 - p).log()).mean()


# Wrong: a layer norm over one feature subtracts the number from itself, so the score is always the bias; right is to leave it out after the last layer.
@step(body=mlp(4, 5), out=linear(5, 1), norm=nn.LayerNorm(1), x=randn(N, 4), y=randn(N))
def layer_norm_of_one_score(self, x, y):
    score = self.norm(self.out(torch.relu(self.body(x))))  # fault: mean-of-one-element
    return F.mse_loss(score.squeeze(-1), y)


# Wrong: the floor of the logarithm is written as a ceiling, so every probability becomes 1e-7 and nothing is learnt; right is clamp(min=1e-7).
@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def floor_written_as_ceiling(self, x, y):
    p = torch.softmax(self.net(x), dim=1)
    log_p = torch.log(torch.clamp(p, max=1e-7))  # fault: clip-leaves-nothing
    return -(F.one_hot(y, 5).float() * log_p).sum(1).mean()


# Wrong: exp(1 / 0.01) on the diagonal overflows single precision, and inf * 0 of the mask is NaN; right is to subtract the row maximum (or logsumexp with -inf).
@step(encoder=linear(5, 4), x=randn(N, 5), y=labels(2, N))
def cosine_over_hundredth_exponentiated(self, x, y):
    z = F.normalize(self.encoder(x), dim=1)
    e = torch.exp(torch.mm(z, z.t()) / 0.01)  # fault: overflow-in-exp
    others = 1 - torch.eye(z.size(0))
    same = torch.eq(y.view(-1, 1), y.view(1, -1)).float() * others
    return -torch.log(((e * same).sum(1) + 1e-6) / ((e * others).sum(1) + 1e-6)).mean()


# Wrong: a log-variance of up to 20 gives exp(20) = 4.9e8 in half precision, whose largest number is 65504; right is .float() before exp or a limit of 10.
@step(encoder=linear(5, 6), decoder=linear(3, 5), x=randn(N, 5), noise=randn(N, 3))
def log_variance_beyond_half(self, x, noise):
    mu, log_variance = self.encoder(x).half().chunk(2, dim=1)
    log_variance = log_variance.clamp(-20, 20)
    divergence = 0.5 * (mu.square() + log_variance.exp() - 1 - log_variance).sum(1)  # fault: overflow-in-exp
    z = mu.float() + noise * torch.exp(0.5 * log_variance.float())
    return F.mse_loss(self.decoder(z), x) + divergence.float().mean()


# Wrong: the difference of two uint8 pictures wraps around below 0 (3 - 5 = 254); right is float() before the subtraction.
@step(net=nn.Conv2d(1, 1, 3, padding=1), current=labels(256, N, 1, 4, 4).to(torch.uint8), following=labels(256, N, 1, 4, 4).to(torch.uint8))
def motion_in_bytes(self, current, following):
    motion = (following - current).float() / 255  # fault: unsigned-difference-wraps
    return F.mse_loss(self.net(current.float() / 255), motion)


# Wrong: full_like of an integer one-hot is integer too, so 0.02 and 0.92 both become 0 and the loss is always 0; right is dtype=torch.float32.
@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def smoothing_like_integer_one_hot(self, x, y):
    share = torch.full_like(F.one_hot(y, 5), 0.02)  # fault: factor-always-zero
    share = share.scatter(1, y[:, None], 0.92)  # fault: factor-always-zero
    return -(share * torch.log_softmax(self.net(x), dim=1)).sum(1).mean()


# Wrong: type_as(tags) turns the probabilities into integers, all 0, without a gradient; right is tags.type_as(probabilities).
@step(tagger=linear(5, 4), rating=linear(5, 1), x=randn(N, 5), tags=labels(2, N, 4), stars=randn(N))
def shares_of_the_type_of_tags(self, x, tags, stars):
    share = torch.sigmoid(self.tagger(x)).type_as(tags)  # fault: fraction-lost-in-cast integer-operands-in-loss
    brier = (share - tags).float().pow(2).mean()  # fault: fraction-lost-in-cast integer-operands-in-loss
    return brier + F.mse_loss(self.rating(x).squeeze(1), stars)


# Wrong: the shop number travels in a half precision row, which has only every second integer above 2048 (every fourth above 4096); right is to keep identifiers as integers.
@step(shops=nn.Embedding(5000, 2), head=linear(5, 1), row=torch.cat([randn(N, 3), labels(5000, N, 1).float()], 1).half(), y=randn(N))
def shop_number_through_half(self, row, y):
    shop = self.shops(row[:, 3].long())  # fault: index-through-low-precision
    return F.mse_loss(self.head(torch.cat([row[:, :3].float(), shop], dim=1)).squeeze(1), y)


# Wrong: 0 means "nothing yet", and 0 - 1 = -1 picks the last row of the table; right is a row of its own for 0 (or a mask).
@step(items=nn.Embedding(7, 3), history=labels(8, N, 5), y=labels(7, N))
def nothing_yet_is_the_last_item(self, history, y):
    rows = self.items.weight[history.clamp(0, 7) - 1]  # fault: index-out-of-range
    user = rows.mean(dim=1)
    return F.cross_entropy(user @ self.items.weight.t(), y)


# Wrong: [:, y] takes the columns of all labels for every row, [N, N]; right is [arange(N), y] or gather.
@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def columns_of_everyones_label(self, x, y):
    log_p = F.log_softmax(self.net(x), dim=-1)
    return -log_p[:, y].mean()  # fault: class-axis-position


# Wrong: a row of the flattened map is `width` long, but the place is row * height + column; right is row * width + column.
@step(head=nn.Conv2d(2, 2, 1), x=randn(N, 2, 3, 5), row=labels(3, N, 4), column=labels(5, N, 4), offset=rand(N, 4, 2))
def height_as_stride(self, x, row, column, offset):
    height, _width = x.shape[2:]
    flat = self.head(x).flatten(2).transpose(1, 2)
    place = row * height + column  # fault: index-stride
    found = flat.gather(1, place.unsqueeze(-1).repeat(1, 1, 2))
    return torch.mean(torch.abs(found - offset))


# Wrong: positions begin behind the padding index 1 and reach 1 + 5 for a full row, but the table ends at 5; right is Embedding(5 + 2, 3).
@step(tokens=nn.Embedding(9, 3), places=nn.Embedding(6, 3), head=linear(3, 2), ids=torch.cat([labels(7, N, 4) + 2, torch.ones(N, 1).long()], 1), y=labels(2, N))
def places_behind_padding_index(self, ids, y):
    present = ids.ne(1).long()
    place = torch.cumsum(present, dim=1) * present + 1
    h = self.tokens(ids[:, :5]) + self.places(place)  # fault: index-out-of-range
    return F.cross_entropy(self.head(h.mean(1)), y)


# Wrong: the position is the sign of the prediction, whose slope is 0 everywhere, so nothing is learnt; right is tanh.
@step(net=mlp(4, 1), x=randn(N, 4), gain=randn(N))
def sharpe_ratio_of_signs(self, x, gain):
    position = torch.sign(self.net(x)).squeeze(-1)  # fault: loss-detached-from-parameters
    profit = position * gain
    return -profit.mean() / (profit.std() + 1e-6)


# Wrong: the expert is picked by a one-hot argmax that carries no probability, so the router never gets a gradient; right is to multiply by the router's softmax.
@step(router=linear(5, 3), experts=linear(5, 6), x=randn(N, 5), y=randn(N, 2))
def router_without_gradient(self, x, y):
    choice = F.one_hot(self.router(x).argmax(dim=-1), 3).float()  # fault: no-rule
    outputs = self.experts(x).view(-1, 3, 2)
    return F.mse_loss((choice.unsqueeze(-1) * outputs).sum(dim=1), y)


# Wrong: the penalty counts active units by a comparison, which has no gradient; right is the L1 norm of the code.
@step(encoder=linear(6, 4), decoder=linear(4, 6), x=randn(N, 6))
def active_units_counted(self, x):
    code = F.relu(self.encoder(x))
    penalty = (code > 0).float().sum(1).mean()  # fault: loss-detached-from-parameters
    return F.mse_loss(self.decoder(code), x) + 0.1 * penalty


# Right: the exponential weights are cut at 20 and outside of the gradient on purpose; critic, return and log-likelihood are all [N].
@step(actor=mlp(4, 2), critic=mlp(4, 1), x=randn(N, 4), a=randn(N, 2), ret=randn(N))
def advantage_weighted_regression(self, x, a, ret):
    value = self.critic(x).squeeze(-1)
    weight = torch.exp((ret - value.detach()) / 0.5).clamp(max=20.0)
    log_p = -0.5 * (a - self.actor(x)).square().sum(-1)
    return -(weight * log_p).mean() + 0.5 * F.mse_loss(value, ret)


# Right: rotary positions turn the halves (-x2, x1); positions [time, half] repeat over batch and heads as they should.
@step(qkv=linear(8, 24), out=linear(8, 3), frequency=Buffer(torch.tensor([1.0, 0.01])), x=randn(N, 5, 8), y=labels(3, N, 5))
def rotary_halves(self, x, y):
    n, t, _ = x.shape
    q, k, v = (part.view(n, t, 2, 4).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
    angle = torch.arange(t).float()[:, None] * self.frequency
    angle = torch.cat([angle, angle], dim=-1)
    q = q * angle.cos() + torch.cat([-q[..., 2:], q[..., :2]], dim=-1) * angle.sin()
    k = k * angle.cos() + torch.cat([-k[..., 2:], k[..., :2]], dim=-1) * angle.sin()
    mixed = torch.softmax(q @ k.transpose(2, 3) / 2, dim=3) @ v
    return F.cross_entropy(self.out(mixed.transpose(1, 2).flatten(2)).transpose(1, 2), y)


# Right: beta-NLL multiplies the likelihood of each sample by its own variance, outside of the gradient on purpose; all are columns.
@step(mean=mlp(4, 1), spread=mlp(4, 1), x=randn(N, 4), y=randn(N, 1))
def beta_weighted_likelihood(self, x, y):
    mu, variance = self.mean(x), F.softplus(self.spread(x)) + 1e-4
    nll = 0.5 * (torch.log(variance) + (y - mu) ** 2 / variance)
    return (nll * variance.detach() ** 0.5).mean()


# Right: a column of abilities minus a row of difficulties is the table of persons and questions, as the answers are.
@step(ability=mlp(3, 1), question=nn.Embedding(5, 1), x=randn(N, 3), answers=flags(N, 5))
def item_response(self, x, answers):
    difficulty = self.question.weight.squeeze(1)
    return F.binary_cross_entropy_with_logits(self.ability(x) - difficulty, answers)


# Right: factorisation machine; the square of the sum minus the sum of squares runs over the fields, and both terms are [N].
@step(factor=nn.Embedding(11, 4), single=nn.Embedding(11, 1), ids=labels(11, N, 3), y=flags(N))
def factorisation_machine(self, ids, y):
    v = self.factor(ids)
    pairs = 0.5 * (v.sum(1) ** 2 - (v**2).sum(1)).sum(-1)
    alone = self.single(ids).sum(dim=(1, 2))
    return F.binary_cross_entropy_with_logits(alone + pairs, y)


# Right: scale-invariant ratio of each signal: centred and projected along time with the axis kept, log10 of a positive quotient.
@step(net=nn.Conv1d(1, 1, 3, padding=1), noisy=randn(N, 16), clean=randn(N, 16))
def scale_invariant_ratio(self, noisy, clean):
    estimate = self.net(noisy.unsqueeze(1)).squeeze(1)
    estimate = estimate - estimate.mean(-1, keepdim=True)
    clean = clean - clean.mean(-1, keepdim=True)
    along = (estimate * clean).sum(-1, keepdim=True) / (clean.pow(2).sum(-1, keepdim=True) + 1e-8) * clean
    ratio = (along.pow(2).sum(-1) + 1e-8) / ((estimate - along).pow(2).sum(-1) + 1e-8)
    return -10 * torch.log10(ratio).mean()


# Right: forbidden actions get a large finite score, so that probability 0 times a finite log-probability is 0 in the entropy.
@step(policy=mlp(5, 4), x=randn(N, 5), a=labels(2, N), advantage=randn(N), allowed=torch.tensor([[True, True, False, True]]).repeat(N, 1))
def entropy_with_finite_floor(self, x, a, advantage, allowed):
    scores = torch.where(allowed, self.policy(x), -1e8)
    log_share = torch.log_softmax(scores, dim=-1)
    entropy = -(log_share.exp() * log_share).sum(-1)
    chosen = torch.gather(log_share, 1, a.unsqueeze(1)).squeeze(1)
    return -(chosen * advantage).mean() - 0.01 * entropy.mean()


# Wrong: nothing in PyTorch: several captions may fit a picture. Its exporters write an operator that takes class indices alone.
@step(picture=linear(5, 4), text=linear(3, 4), p=randn(N, 5), t=randn(N, 3), y=labels(3, N))
def several_captions_per_picture(self, p, t, y):
    a, b = F.normalize(self.picture(p), dim=-1), F.normalize(self.text(t), dim=-1)
    logits = a @ b.t() / 0.07
    same = (y[:, None] == y[None, :]).float()
    target = same / same.sum(dim=1, keepdim=True)
    return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target))  # fault: float-class-index


# Right: the bytes are widened to int32 before they are subtracted, so the difference may be negative.
@step(net=nn.Conv2d(1, 1, 3, padding=1), current=labels(256, N, 1, 4, 4).to(torch.uint8), following=labels(256, N, 1, 4, 4).to(torch.uint8))
def motion_of_widened_bytes(self, current, following):
    motion = (following.int() - current.int()) / 255
    return F.mse_loss(self.net(current / 255), motion)


# Right: log(1 - exp(-h)) of a hazard that is at least 1e-3 stays finite.
@step(net=mlp(4, 1), x=randn(N, 4), died=flags(N))
def grouped_hazard(self, x, died):
    hazard = (F.softplus(self.net(x)) + 1e-3).squeeze(1)
    return -(died * torch.log1p(-torch.exp(-hazard)) - (1 - died) * hazard).mean()

import torch
from program import Buffer, N, flags, labels, linear, mlp, rand, randn, simplex, step
from torch import nn
from torch.nn import functional as F


def pixels(*shape):
    return torch.randint(0, 256, shape, dtype=torch.uint8)


# Wrong: the network already ends in a softmax and CrossEntropyLoss applies another; it wants the raw scores.
@step(
    conv=nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
    fc=linear(3 * 3 * 3, 10),
    criterion=nn.CrossEntropyLoss(weight=torch.tensor([1.0] * 9 + [2.0])),
    x=randn(N, 1, 8, 8),
    y=labels(10, N),
)
def digits_softmax_before_criterion(self, x, y):
    out = self.fc(self.conv(x))
    out = F.softmax(out, dim=-1)
    loss = self.criterion(out, y)  # fault: probabilities-into-logit-loss
    return loss


# Wrong: the net ends in ReLU, so p can be 0 or above 1 and both logarithms break; a sigmoid is needed.
@step(net=mlp(6, 1, nn.ReLU()), x=randn(N, 6), y=flags(N))
def churn_bce_after_relu(self, x, y):
    p = self.net(x).view(-1)
    loss = -(y * torch.log(p) + (1 - y) * torch.log(1 - p))  # fault: logits-into-probability-loss
    return loss.mean()


# Wrong: the diagonal of the distance matrix is the root of exactly 0, whose gradient is infinite times 0 = nan; an eps inside the root is missing.
@step(net=mlp(5, 4), x=randn(N, 5), y=labels(2, N))
def pair_distances_root_of_zero(self, x, y):
    e = self.net(x)
    diff = e[:, None, :] - e[None, :, :]
    dist = (diff**2).sum(-1).sqrt()  # fault: infinite-gradient
    same = y[:, None] == y[None, :]
    pos = torch.where(same, dist, torch.zeros_like(dist))
    neg = torch.where(same, torch.zeros_like(dist), F.relu(2.0 - dist))
    return pos.mean() + neg.mean()


# Wrong: masked actions have probability 0, and 0 * log(0) is nan in the entropy; use an eps or leave those entries out.
@step(body=nn.Sequential(nn.Linear(4, 8), nn.Tanh()), pi=linear(8, 5), obs=randn(N, 4), legal=flags(N, 5), act=labels(5, N), adv=randn(N))
def entropy_of_illegal_moves(self, obs, legal, act, adv):
    logits = self.pi(self.body(obs))
    first = F.one_hot(act, 5).bool()
    logits = logits.masked_fill(~(legal.bool() | first), float("-inf"))
    probs = F.softmax(logits, dim=-1)
    logp = F.log_softmax(logits, dim=-1).gather(1, act.unsqueeze(1)).squeeze(1)
    entropy = -(probs * torch.log(probs)).sum(-1)  # fault: invalid-domain
    return -(logp * adv).mean() - 0.01 * entropy.mean()


# Wrong: the advantages are (6, 1), so std over dim=1 is that of one value (0/0 = nan); normalise over the batch, dim=0.
@step(policy=linear(4, 3), value=linear(4, 1), s=randn(N, 4), a=labels(3, N), ret=randn(N, 1))
def advantage_spread_of_one_value(self, s, a, ret):
    adv = ret - self.value(s)
    value_loss = adv.pow(2).mean()
    adv = (adv - adv.mean(dim=1, keepdim=True)) / (adv.std(dim=1, keepdim=True) + 1e-8)  # fault: mean-of-one-element
    logp = F.log_softmax(self.policy(s), dim=1).gather(1, a.view(-1, 1))
    return -(logp * adv).mean() + 0.5 * value_loss


# Wrong: sales below 0 are clipped to 0 and the percentage error then divides by 0; add an eps or mask those.
@step(net=mlp(7, 1), x=randn(N, 7), sales=randn(N))
def percentage_of_no_sales(self, x, sales):
    y = sales.clamp(min=0)
    pred = self.net(x).squeeze(-1)
    mape = torch.abs((y - pred) / y)  # fault: invalid-domain
    return 100 * mape.mean()


# Wrong: the variance is a plain output of a linear layer and may be negative; softplus or exp is missing before log and division.
@step(
    gru=nn.GRU(2, 4, batch_first=True),
    mu=linear(4, 1),
    var=linear(4, 1),
    x=randn(N, 5, 2),
    y=randn(N, 1),
)
def demand_with_raw_variance(self, x, y):
    _, h = self.gru(x)
    h = h.squeeze(0)
    mu, var = self.mu(h), self.var(h)
    nll = 0.5 * (torch.log(var) + (y - mu) ** 2 / var)  # fault: logits-into-probability-loss
    return nll.mean()


# Wrong: multilabel_soft_margin_loss takes scores and applies the sigmoid itself.
@step(
    net=nn.Sequential(nn.Conv1d(2, 3, 3), nn.ReLU(), nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(3, 4)),
    x=randn(N, 2, 9),
    y=flags(N, 4),
)
def tags_of_sigmoid(self, x, y):
    probs = torch.sigmoid(self.net(x))
    return F.multilabel_soft_margin_loss(probs, y)  # fault: probabilities-into-logit-loss


# Wrong: 1 - 1e-9 is exactly 1 in single precision, so the clamp does not keep 1 - p from 0; 1e-6 would.
@step(net=mlp(5, 1), x=randn(N, 5), y=flags(N, 1))
def clamp_below_single_precision(self, x, y):
    p = torch.sigmoid(self.net(x))
    p = torch.clamp(p, 1e-9, 1 - 1e-9)  # fault: invalid-domain
    loss = -(y * p.log() + (1 - y) * (1 - p).log())  # fault: invalid-domain
    return loss.mean()


# Wrong: max=1e-7 caps every probability at 1e-7, so the loss is constant and has no gradient; min=1e-7 was meant.
@step(emb=nn.EmbeddingBag(30, 4), fc=linear(4, 6), bag=labels(30, N, 5), y=labels(6, N))
def probabilities_capped_at_epsilon(self, bag, y):
    probs = torch.softmax(self.fc(self.emb(bag)), dim=1)
    picked = probs.gather(1, y.unsqueeze(1))
    picked = picked.clamp(max=1e-7)  # fault: clip-leaves-nothing
    return -picked.log().mean()  # fault: clip-leaves-nothing


# Wrong: NLLLoss gets the scores of the last layer; log_softmax is missing (the loss goes to minus infinity).
@step(
    emb=nn.Embedding(14, 4),
    lstm=nn.LSTM(4, 5, batch_first=True),
    tag=linear(5, 7),
    loss=nn.NLLLoss(ignore_index=0),
    words=labels(14, N, 4),
    tags=labels(7, N, 4),
)
def pos_tags_without_log_softmax(self, words, tags):
    h, _ = self.lstm(self.emb(words))
    scores = self.tag(h)
    return self.loss(scores.flatten(0, 1), tags.flatten())  # fault: logits-into-probability-loss


# Wrong: // on bytes makes every pixel below 255 a 0; divide by 255.0.
@step(
    net=nn.Sequential(nn.Conv2d(3, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(2 * 4 * 4, 4)),
    img=pixels(N, 3, 6, 6),
    y=labels(4, N),
)
def bytes_floored_to_black(self, img, y):
    x = (img // 255).float()  # fault: fraction-lost-in-cast
    return F.cross_entropy(self.net(x), y)


# Wrong: .long() of shares between 0 and 1 is 0 everywhere, so argmax always names class 0; take argmax of the shares.
@step(net=mlp(5, 4), x=randn(N, 5), soft=simplex(N, 4))
def soft_labels_cast_before_argmax(self, x, soft):
    q = soft / soft.sum(dim=1, keepdim=True)
    q = F.softmax(q * 5, dim=1)
    target = q.long().argmax(dim=1)  # fault: fraction-lost-in-cast
    return F.cross_entropy(self.net(x), target)


# Wrong: a product of 40 probabilities falls below the smallest half number and its log is -inf; sum the logs (in single precision).
@step(emb=nn.Embedding(16, 6), fc=linear(6, 1), seq=labels(16, N, 40))
def product_of_half_probabilities(self, seq):
    p = torch.sigmoid(self.fc(self.emb(seq)).squeeze(-1)).half()
    likelihood = p.prod(dim=1)  # fault: invalid-domain
    return -torch.log(likelihood).float().mean()  # fault: invalid-domain


# Wrong: two frames of bytes are subtracted as bytes, so a darker pixel wraps round to about 255; convert to float first.
@step(
    conv=nn.Conv2d(1, 2, 3),
    fc=linear(2, 1),
    before=pixels(N, 1, 6, 5),
    after=pixels(N, 1, 6, 5),
    speed=rand(N, 1),
)
def motion_from_byte_frames(self, before, after, speed):
    delta = after - before  # fault: unsigned-difference-wraps
    delta = delta.float() / 255.0
    h = F.relu(self.conv(delta)).mean(dim=[2, 3])
    return F.mse_loss(self.fc(h), speed)


# Wrong: .bool() of a confidence between 0 and 1 is True for everybody, so no weight is left; use the float (or compare with a threshold).
@step(net=mlp(6, 3), judge=Buffer(torch.randn(6)), x=randn(N, 6), y=labels(3, N))
def confidence_to_bool(self, x, y):
    conf = torch.sigmoid(x @ self.judge)
    keep = conf.bool()  # fault: fraction-lost-in-cast
    ce = F.cross_entropy(self.net(x), y, reduction="none")
    return (ce * keep).sum() / keep.sum()


# Wrong: bytes are scaled to 0..1 before .long(), so the palette of 16 is only asked for entries 0 and 1; // 16 was meant.
@step(palette=nn.Embedding(16, 3), fc=linear(3, 4), img=pixels(N, 5, 4), y=labels(4, N))
def palette_of_scaled_bytes(self, img, y):
    level = (img.float() / 255).long()  # fault: fraction-lost-in-cast
    e = self.palette(level)
    return F.cross_entropy(self.fc(e.mean(dim=(1, 2))), y)


# Wrong: buckets 0..7 are moved to 1..8 to keep 0 for padding, but the table has only 8 rows; it needs 9.
@step(fails=True, table=nn.Embedding(8, 4, padding_idx=0), fc=linear(4, 1), ids=labels(7, N, 3), click=flags(N))
def hashed_features_shifted(self, ids, click):
    e = self.table(ids % 8 + 1)  # fault: index-out-of-range
    logit = self.fc(e.sum(dim=1)).squeeze(1)
    return F.binary_cross_entropy_with_logits(logit, click)


# Wrong: four edges make five groups (0..4) but the head has four outputs; the head needs five.
@step(
    fails=True,
    edges=Buffer(torch.tensor([0.2, 0.4, 0.6, 0.8])),
    net=mlp(5, 4),
    x=randn(N, 5),
    income=rand(N) * 0.7,
)
def income_group_above_the_head(self, x, income):
    group = (income.unsqueeze(1) > self.edges).sum(dim=1)
    return F.cross_entropy(self.net(x), group)  # fault: class-index-out-of-range


# Wrong: the mask token gets the number 20, one behind the vocabulary of 20; the table needs 21 rows.
@step(
    fails=True,
    emb=nn.Embedding(20, 4),
    enc=nn.GRU(4, 6, batch_first=True, bidirectional=True),
    head=linear(12, 20),
    tokens=labels(20, N, 5),
    chance=rand(N, 5) * 0.8 + 0.2,
)
def mask_token_behind_table(self, tokens, chance):
    hidden = chance < 0.15
    inputs = tokens.masked_fill(hidden, 20)
    h, _ = self.enc(self.emb(inputs))  # fault: index-out-of-range
    ce = F.cross_entropy(self.head(h).transpose(1, 2), tokens, reduction="none")
    return (ce * hidden).sum() / hidden.sum().clamp(min=1)


# Wrong: positions are counted from 1 (0 is padding), so a full sentence of 6 words asks for row 6 of 6; the table needs 7 rows.
@step(
    fails=True,
    emb=nn.Embedding(9, 4, padding_idx=0),
    pos=nn.Embedding(6, 4, padding_idx=0),
    fc=linear(4, 2),
    tokens=labels(9, N, 6) * torch.tensor([1, 1, 1, 1, 1, 0]),
    y=labels(2, N),
)
def positions_counted_from_one(self, tokens, y):
    real = (tokens != 0).long()
    position = real.cumsum(dim=1) * real
    x = self.emb(tokens) + self.pos(position)  # fault: index-out-of-range
    return F.cross_entropy(self.fc(x.mean(1)), y)


# Wrong: the prediction is thresholded before the loss, so no gradient reaches the net; BCE needs the probability.
@step(net=mlp(8, 1, nn.Sigmoid()), x=randn(N, 8), y=flags(N, 1))
def spam_thresholded_before_bce(self, x, y):
    out = self.net(x)
    pred = (out > 0.5).float()  # fault: loss-detached-from-parameters
    eps = 1e-7
    bce = y * torch.log(pred + eps) + (1 - y) * torch.log(1 - pred + eps)  # fault: loss-detached-from-parameters
    return -bce.mean()  # fault: loss-detached-from-parameters


# Wrong: the generator is judged by the embedding of its argmax, through which nothing flows back to it; soft words (probs @ table) or Gumbel are needed.
@step(
    gen=nn.GRU(3, 5, batch_first=True),
    to_word=linear(5, 12),
    words=Buffer(torch.randn(12, 4)),
    frozen=Buffer(torch.randn(4)),
    noise=randn(N, 4, 3),
)
def text_generator_picks_words(self, noise):
    h, _ = self.gen(noise)
    probs = F.softmax(self.to_word(h), dim=-1)
    word = probs.argmax(dim=-1)  # fault: no-rule
    fake = self.words[word].mean(dim=1)
    score = fake @ self.frozen
    return F.binary_cross_entropy_with_logits(score, torch.ones_like(score))  # fault: no-rule


# Wrong: sign() has gradient zero everywhere, so the direction of the price is never learned; use the raw value or tanh.
@step(lstm=nn.LSTM(1, 4, batch_first=True), fc=linear(4, 1), price=randn(N, 8, 1), change=randn(N))
def direction_of_price_by_sign(self, price, change):
    _, (h, _) = self.lstm(price)
    pred = self.fc(h[-1]).squeeze(-1)
    up = torch.sign(pred)  # fault: loss-detached-from-parameters
    return F.mse_loss(up, torch.sign(change))  # fault: loss-detached-from-parameters


# Right: nll_loss gets logarithms, because the log is taken of the softmax by hand, with an eps against log(0).
@step(net=mlp(5, 4), x=randn(N, 5), y=labels(4, N))
def nll_of_logged_softmax(self, x, y):
    probs = F.softmax(self.net(x), dim=1)
    return F.nll_loss(torch.log(probs + 1e-8), y)


# Right: of the two probabilities the second is that of class 1, and the binary loss written out wants a probability.
@step(net=mlp(5, 2, nn.Softmax(dim=1)), x=randn(N, 5), y=labels(2, N))
def second_share_into_bce(self, x, y):
    p = self.net(x)[:, 1]
    p = p.clamp(1e-6, 1 - 1e-6)
    y = y.float()
    return -(y * p.log() + (1 - y) * torch.log(1 - p)).mean()


# Right: masked actions have probability 0, but the logarithm gets an eps that single precision keeps, so 0 * log is 0.
@step(pi=mlp(4, 5), obs=randn(N, 4), legal=flags(N, 5), act=labels(5, N), adv=randn(N))
def entropy_with_epsilon(self, obs, legal, act, adv):
    logits = self.pi(obs)
    allowed = legal.bool() | F.one_hot(act, 5).bool()
    probs = F.softmax(logits.masked_fill(~allowed, float("-inf")), dim=-1)
    logp = torch.log(probs.gather(1, act.unsqueeze(1)).squeeze(1) + 1e-12)
    entropy = -(probs * torch.log(probs + 1e-12)).sum(-1)
    return -(logp * adv).mean() - 0.01 * entropy.mean()


# Right: the labels come as floats from a csv table (0., 1., 2.), and .long() makes them the class numbers cross_entropy wants.
@step(net=mlp(5, 3), table=torch.cat([torch.randn(N, 5), torch.randint(0, 3, (N, 1)).float()], dim=1))
def csv_label_in_last_column(self, table):
    x, y = table[:, :-1], table[:, -1].long()
    return F.cross_entropy(self.net(x), y)


# Right: argmax only makes the target from the teacher, the student's scores stay differentiable.
@step(teacher=mlp(5, 4), student=mlp(5, 4), x=randn(N, 5))
def teacher_argmax_as_label(self, x):
    with torch.no_grad():
        t = F.softmax(self.teacher(x), dim=1)
        conf, label = t.max(dim=1)
    ce = F.cross_entropy(self.student(x), label, reduction="none")
    keep = (conf > 0.35).float()
    return (ce * keep).mean()


# Right: the integer division is wanted: it makes the 16 grey levels 0..15 which are the classes.
@step(conv=nn.Conv2d(1, 16, 3, padding=1), img=pixels(N, 1, 5, 4), noise=randn(N, 1, 5, 4))
def grey_levels_by_floor_division(self, img, noise):
    target = (img.squeeze(1) // 16).long()
    x = img.float() / 255 + 0.1 * noise
    return F.cross_entropy(self.conv(x), target)


# Right: -inf exists in half precision, every row keeps its diagonal, and the softmax is taken in single precision.
@step(
    qk=linear(4, 8),
    fc=linear(4, 5),
    x=randn(N, 6, 4),
    y=labels(5, N, 6),
)
def half_attention_minus_infinity(self, x, y):
    q, k = self.qk(x).half().chunk(2, dim=-1)
    scores = q @ k.transpose(1, 2) / 2
    future = torch.ones(6, 6).triu(1).bool()
    scores = scores.masked_fill(future, float("-inf"))
    w = F.softmax(scores.float(), dim=-1)
    return F.cross_entropy(self.fc(w @ x).view(-1, 5), y.view(-1))


# Right: the hard choice is used in the forward pass, the soft one carries the gradient (straight-through).
@step(gate=linear(5, 3), experts=nn.ModuleList([nn.Linear(5, 1) for _ in range(3)]), x=randn(N, 5), y=randn(N))
def hard_gate_straight_through(self, x, y):
    soft = F.softmax(self.gate(x), dim=1)
    hard = F.one_hot(soft.argmax(dim=1), 3).float()
    choice = hard + soft - soft.detach()
    outs = torch.cat([expert(x) for expert in self.experts], dim=1)
    pred = (choice * outs).sum(dim=1)
    return F.mse_loss(pred, y)


# Right: 1e-6 survives in single precision on both ends, so neither logarithm meets 0.
@step(net=mlp(5, 1), x=randn(N, 5), y=flags(N, 1))
def clamp_kept_in_single(self, x, y):
    p = torch.sigmoid(self.net(x)).clamp(1e-6, 1 - 1e-6)
    loss = -(y * p.log() + (1 - y) * (1 - p).log())
    return loss.mean()


# Right: buckets 1..8 and row 0 for padding fit a table of nine rows.
@step(table=nn.Embedding(9, 4, padding_idx=0), fc=linear(4, 1), ids=labels(100, N, 3), click=flags(N))
def hashed_features_with_padding_row(self, ids, click):
    e = self.table(ids % 8 + 1)
    logit = self.fc(e.sum(dim=1)).squeeze(1)
    return F.binary_cross_entropy_with_logits(logit, click)


# Right: -100 marks no label; it is clamped to 0 only to gather something, and the mask removes these places.
@step(
    emb=nn.Embedding(11, 4),
    fc=linear(4, 11),
    tokens=labels(11, N, 5),
    y=torch.where(torch.rand(N, 5) > 0.4, torch.randint(0, 11, (N, 5)), torch.tensor(-100)),
)
def unlabelled_clamped_before_gather(self, tokens, y):
    logp = F.log_softmax(self.fc(self.emb(tokens)), dim=-1)
    mask = y != -100
    picked = logp.gather(2, y.clamp(min=0).unsqueeze(2)).squeeze(2)
    return -(picked * mask).sum() / mask.sum().clamp(min=1)


# Right: ReLU keeps the prediction at 0 or above, so log1p is defined, and the root has an eps.
@step(net=mlp(6, 1, nn.ReLU()), x=randn(N, 6), y=rand(N) * 9)
def rmsle_of_relu(self, x, y):
    pred = self.net(x).squeeze(1)
    err = torch.log1p(pred) - torch.log1p(y.clamp(min=0))
    return torch.sqrt((err**2).mean() + 1e-9)


# Right: the bytes become 16-bit signed numbers before the subtraction, so a darker pixel is negative.
@step(conv=nn.Conv2d(1, 2, 3), fc=linear(2, 1), before=pixels(N, 1, 6, 5), after=pixels(N, 1, 6, 5), speed=rand(N, 1))
def motion_from_short_frames(self, before, after, speed):
    delta = after.short() - before.short()
    h = F.relu(self.conv(delta.float() / 255)).mean(dim=[2, 3])
    return F.mse_loss(self.fc(h), speed)

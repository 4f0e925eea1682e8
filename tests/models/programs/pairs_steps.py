"""Training steps in pairs: one with a mistake, and the same one without it."""
import torch
from program import N, flags, labels, linear, mlp, rand, randn, simplex, step
from torch import nn
from torch.nn import functional as F


# Wrong: the loss is that of the first sample alone; right is without `[:1]`.
@step(net=mlp(8, 5), x=randn(N, 8), y=labels(5, N))
def first_sample_only(self, x, y):
    logits = self.net(x)
    return F.cross_entropy(logits[:1], y[:1])  # fault: samples-left-out


# Wrong: the same with `[0]`.
@step(net=mlp(8, 1), x=randn(N, 8), y=randn(N))
def first_sample_mse(self, x, y):
    pred = self.net(x).squeeze(1)
    return ((pred[0] - y[0]) ** 2).mean()  # fault: samples-left-out


# Wrong: each token is predicted from itself; right is `tokens[:, 1:]`.
@step(emb=nn.Embedding(20, 8), rnn=nn.GRU(8, 8, batch_first=True), head=linear(8, 20), tokens=labels(20, N, 7))
def language_unshifted(self, tokens):
    h, _ = self.rnn(self.emb(tokens))
    logits = self.head(h)
    return F.cross_entropy(logits[:, :-1].reshape(-1, 20), tokens[:, :-1].reshape(-1))  # fault: target-in-prediction


@step(emb=nn.Embedding(20, 8), rnn=nn.GRU(8, 8, batch_first=True), head=linear(8, 20), tokens=labels(20, N, 7))
def language_shifted(self, tokens):
    h, _ = self.rnn(self.emb(tokens))
    logits = self.head(h)
    return F.cross_entropy(logits[:, :-1].reshape(-1, 20), tokens[:, 1:].reshape(-1))


# Wrong: each token is predicted after it was read; right is the other way round.
@step(emb=nn.Embedding(20, 8), rnn=nn.GRU(8, 8, batch_first=True), head=linear(8, 20), tokens=labels(20, N, 7))
def language_shifted_back(self, tokens):
    h, _ = self.rnn(self.emb(tokens))
    logits = self.head(h)
    return F.cross_entropy(logits[:, 1:].reshape(-1, 20), tokens[:, :-1].reshape(-1))  # fault: target-in-prediction


# Wrong: the arguments are exchanged: log-probabilities come first.
@step(net=mlp(8, 5), x=randn(N, 8), p=simplex(N, 5))
def kl_sides_swapped(self, x, p):
    return F.kl_div(p, F.log_softmax(self.net(x), 1), reduction="batchmean")  # fault: invalid-domain logits-into-probability-loss


@step(net=mlp(8, 5), x=randn(N, 8), p=simplex(N, 5))
def kl_log_of_target_first(self, x, p):
    return F.kl_div(p.log(), F.softmax(self.net(x), 1), reduction="batchmean")


# Wrong: the first argument holds log-probabilities; right is `F.log_softmax`.
@step(net=mlp(8, 5), x=randn(N, 8), p=simplex(N, 5))
def kl_of_probabilities(self, x, p):
    return F.kl_div(F.softmax(self.net(x), 1), p, reduction="batchmean")  # fault: probabilities-into-logit-loss


# Wrong: the arguments are exchanged: the prediction comes first.
@step(net=mlp(8, 1), x=randn(N, 8), y=flags(N))
def bce_sides_swapped(self, x, y):
    return F.binary_cross_entropy(y, torch.sigmoid(self.net(x)).squeeze(1))  # fault: logarithm-of-labels


# Wrong: the arguments are exchanged: the scores come first.
@step(net=mlp(8, 1), x=randn(N, 8), y=flags(N))
def bce_logits_sides_swapped(self, x, y):
    return F.binary_cross_entropy_with_logits(y, self.net(x).squeeze(1))  # fault: swapped-loss-sides


# Wrong: the arguments are exchanged: the rate comes first.
@step(net=mlp(8, 1), x=randn(N, 8), y=labels(9, N).float())
def poisson_sides_swapped(self, x, y):
    return F.poisson_nll_loss(y, self.net(x).squeeze(1))  # fault: swapped-loss-sides


@step(net=mlp(8, 1), x=randn(N, 8), y=labels(9, N).float())
def poisson_right(self, x, y):
    return F.poisson_nll_loss(self.net(x).squeeze(1), y)


@step(net=mlp(8, 5), x=randn(N, 8), y=labels(5, N))
def smoothing_adds_up_to_one(self, x, y):
    soft = F.one_hot(y, 5).float() * 0.9 + 0.1 / 5
    return -(soft * F.log_softmax(self.net(x), 1)).sum(1).mean()


# Wrong: 0.9 and four times 0.02 do not add up to 1; right is 0.92.
@step(net=mlp(8, 5), x=randn(N, 8), y=labels(5, N))
def smoothing_full_one_hot(self, x, y):
    soft = torch.full((N, 5), 0.1 / 5).scatter(1, y.unsqueeze(1), 0.9)
    return -(soft * F.log_softmax(self.net(x), 1)).sum(1).mean()  # fault: no-rule


# Wrong: the scores of the student are not divided by 4.
@step(net=mlp(8, 5), teacher=mlp(8, 5), x=randn(N, 8))
def distillation_one_temperature(self, x):
    with torch.no_grad():
        soft = F.softmax(self.teacher(x) / 4, 1)
    return F.kl_div(F.log_softmax(self.net(x), 1), soft, reduction="batchmean") * 16  # fault: uneven-temperature


# Wrong: the scores of the teacher are not divided by 4.
@step(net=mlp(8, 5), teacher=mlp(8, 5), x=randn(N, 8))
def distillation_student_temperature(self, x):
    with torch.no_grad():
        soft = F.softmax(self.teacher(x), 1)
    return F.kl_div(F.log_softmax(self.net(x) / 4, 1), soft, reduction="batchmean")  # fault: uneven-temperature


@step(net=mlp(8, 5), teacher=mlp(8, 5), x=randn(N, 8))
def distillation_both_temperatures(self, x):
    with torch.no_grad():
        soft = F.softmax(self.teacher(x) / 4, 1)
    return F.kl_div(F.log_softmax(self.net(x) / 4, 1), soft, reduction="batchmean") * 16


@step(net=mlp(8, 5), teacher=mlp(8, 5), x=randn(N, 8))
def sharpened_targets(self, x):
    with torch.no_grad():
        soft = F.softmax(self.teacher(x) / 0.5, 1)
    return F.kl_div(F.log_softmax(self.net(x), 1), soft, reduction="batchmean")


# Wrong: the positive is the anchor itself; right is `self.net(other)`.
@step(net=mlp(8, 5), x=randn(N, 8), other=randn(N, 8), far=randn(N, 8))
def triplet_anchor_is_positive(self, x, other, far):
    a, p, n = self.net(x), self.net(x), self.net(far)
    return F.relu((a - p).norm(dim=1) - (a - n).norm(dim=1) + 1).mean() + 0 * other.mean()  # fault: compared-with-itself


# Wrong: the positive is the anchor itself; right is `(a, p, n)`.
@step(net=mlp(8, 5), x=randn(N, 8), near=randn(N, 8), far=randn(N, 8))
def triplet_module_anchor_twice(self, x, near, far):
    a, p, n = self.net(x), self.net(near), self.net(far)
    return F.triplet_margin_loss(a, a, n) + 0.01 * p.pow(2).mean()  # fault: compared-with-itself


@step(net=mlp(8, 5), x=randn(N, 8), near=randn(N, 8), far=randn(N, 8))
def triplet_right(self, x, near, far):
    a, p, n = self.net(x), self.net(near), self.net(far)
    return F.triplet_margin_loss(a, p, n)


# Wrong: the first distance is that of a value and itself.
@step(net=mlp(8, 5), x=randn(N, 8), near=randn(N, 8))
def consistency_with_itself(self, x, near):
    a, b = self.net(x), self.net(near)
    return F.mse_loss(a, a) + 0.1 * F.mse_loss(a, b)  # fault: compared-with-itself


# Wrong: the cosine of a value and itself is 1; right is `(a, b)`.
@step(net=mlp(8, 5), x=randn(N, 8), near=randn(N, 8))
def cosine_with_itself(self, x, near):
    a, b = self.net(x), self.net(near)
    return (1 - F.cosine_similarity(a, a)).mean() + 0.1 * (b ** 2).mean()  # fault: compared-with-itself


# Wrong: the loss takes scores; right is without the softmax.
@step(net=mlp(8, 5), x=randn(N, 8), y=labels(5, N))
def softmax_then_cross_entropy(self, x, y):
    return F.cross_entropy(F.softmax(self.net(x), 1), y)  # fault: probabilities-into-logit-loss


# Wrong: one sigmoid too many.
@step(net=mlp(8, 1), x=randn(N, 8), y=flags(N))
def sigmoid_twice(self, x, y):
    return F.binary_cross_entropy(torch.sigmoid(torch.sigmoid(self.net(x))).squeeze(1), y)  # fault: probabilities-into-logit-loss


# Wrong: one softmax too many.
@step(net=mlp(8, 5), x=randn(N, 8), y=labels(5, N))
def softmax_twice(self, x, y):
    p = F.softmax(F.softmax(self.net(x), 1), 1)  # fault: probabilities-into-logit-loss
    return F.nll_loss(torch.log(p), y)


@step(net=mlp(8, 5), x=randn(N, 8), y=labels(5, N))
def log_softmax_into_cross_entropy(self, x, y):
    return F.cross_entropy(F.log_softmax(self.net(x), 1), y)


# Wrong: `//` leaves 0 unless all are right; right is `/`.
@step(net=mlp(8, 5), x=randn(N, 8), y=labels(5, N))
def accuracy_by_integer_division(self, x, y):
    return (self.net(x).argmax(1) == y).sum() // N  # fault: quotient-always-zero


# Wrong: the best sample of each class; right is `argmax(1)`.
@step(net=mlp(8, 5), x=randn(N, 8), y=labels(5, N))
def accuracy_argmax_of_batch(self, x, y):
    return (self.net(x).argmax(0)[:5] == y[:5]).float().mean()  # fault: loss-detached-from-parameters


# Wrong: the cosine goes over the batch; right is `dim=1`.
@step(net=mlp(8, 5), x=randn(N, 8), z=randn(N, 8))
def cosine_over_batch(self, x, z):
    return 1 - F.cosine_similarity(self.net(x), self.net(z), dim=0).mean()  # fault: reduction-over-batch-axis


# Wrong: the error is averaged over pixels and batch, the divergence is summed; right is to reduce both alike.
@step(enc=linear(8, 8), dec=linear(4, 8), x=rand(N, 8))
def vae_mean_against_sum(self, x):
    mu, logvar = self.enc(x).chunk(2, 1)
    recon = F.mse_loss(self.dec(mu), x)
    kld = -0.5 * (1 + logvar - mu ** 2 - logvar.exp()).sum()  # fault: sum-beside-mean
    return recon + kld


# Wrong: the divergence has the wrong sign.
@step(enc=linear(8, 8), dec=linear(4, 8), x=rand(N, 8))
def vae_kl_sign(self, x):
    mu, logvar = self.enc(x).chunk(2, 1)
    recon = F.mse_loss(self.dec(mu), x, reduction="sum")
    kld = 0.5 * (1 + logvar - mu ** 2 - logvar.exp()).sum()  # fault: one-sided-loss
    return recon + kld


@step(enc=linear(8, 8), dec=linear(4, 8), x=rand(N, 8))
def vae_right(self, x):
    mu, logvar = self.enc(x).chunk(2, 1)
    recon = F.mse_loss(self.dec(mu), x, reduction="sum")
    kld = -0.5 * (1 + logvar - mu ** 2 - logvar.exp()).sum()
    return recon + kld


# Wrong: nothing holds the variance; right is with `+ logvar`.
@step(net=mlp(8, 2), x=randn(N, 8), y=randn(N))
def gaussian_nll_without_log_term(self, x, y):
    mu, logvar = self.net(x).unbind(1)
    return ((y - mu) ** 2 / logvar.exp()).mean()  # fault: one-sided-loss


@step(net=mlp(8, 2), x=randn(N, 8), y=randn(N))
def gaussian_nll_right(self, x, y):
    mu, logvar = self.net(x).unbind(1)
    return ((y - mu) ** 2 / logvar.exp() + logvar).mean()


# Wrong: a large variance is rewarded; right is `+ logvar`.
@step(net=mlp(8, 2), x=randn(N, 8), y=randn(N))
def gaussian_nll_sign(self, x, y):
    mu, logvar = self.net(x).unbind(1)
    return ((y - mu) ** 2 / logvar.exp() - logvar).mean()  # fault: one-sided-loss


# Wrong: x is added twice.
@step(net=linear(8, 8), out=linear(8, 5), x=randn(N, 8), y=labels(5, N))
def residual_twice(self, x, y):
    h = x + F.relu(self.net(x))
    h = h + x  # fault: added-twice
    return F.cross_entropy(self.out(h), y)


# Wrong: 1 marks what the mean keeps, and what attention hides; right is `1 - mask`.
@step(q=linear(8, 8), k=linear(8, 8), v=linear(8, 8), head=linear(8, 5), x=randn(N, 7, 8), mask=flags(N, 7), y=labels(5, N))
def attention_mask_inverted(self, x, mask, y):
    s = self.q(x) @ self.k(x).transpose(1, 2) / 8 ** 0.5
    s = s + mask[:, None, :] * -1e9
    h = s.softmax(-1) @ self.v(x)  # fault: inverted-mask
    pooled = (h * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
    return F.cross_entropy(self.head(pooled), y)


# Wrong: all but the later positions are hidden, and the last one sees nothing.
@step(q=linear(8, 8), k=linear(8, 8), v=linear(8, 8), head=linear(8, 5), x=randn(N, 7, 8), y=labels(5, N, 7))
def causal_upside_down(self, x, y):
    s = self.q(x) @ self.k(x).transpose(1, 2) / 8 ** 0.5
    s = s.masked_fill(torch.tril(torch.ones(7, 7)) == 1, float("-inf"))
    h = s.softmax(-1) @ self.v(x)  # fault: invalid-domain
    return F.cross_entropy(self.head(h).transpose(1, 2), y)


# Wrong: the earlier positions are hidden; right is `tril`.
@step(q=linear(8, 8), k=linear(8, 8), v=linear(8, 8), head=linear(8, 5), x=randn(N, 7, 8), y=labels(5, N, 7))
def causal_keeps_future(self, x, y):
    s = self.q(x) @ self.k(x).transpose(1, 2) / 8 ** 0.5
    s = s.masked_fill(torch.triu(torch.ones(7, 7)) == 0, float("-inf"))  # fault: inverted-mask
    h = s.softmax(-1) @ self.v(x)
    return F.cross_entropy(self.head(h).transpose(1, 2), y)


@step(q=linear(8, 8), k=linear(8, 8), v=linear(8, 8), head=linear(8, 5), x=randn(N, 7, 8), y=labels(5, N, 7))
def causal_right(self, x, y):
    s = self.q(x) @ self.k(x).transpose(1, 2) / 8 ** 0.5
    s = s.masked_fill(torch.triu(torch.ones(7, 7), 1) == 1, float("-inf"))
    h = s.softmax(-1) @ self.v(x)
    return F.cross_entropy(self.head(h).transpose(1, 2), y)


# Wrong: the weights add up to 1 over the queries; right is dim=-1.
@step(q=linear(8, 8), k=linear(8, 8), v=linear(8, 8), head=linear(8, 5), x=randn(N, 7, 8), y=labels(5, N, 7))
def attention_over_queries(self, x, y):
    s = self.q(x) @ self.k(x).transpose(1, 2) / 8 ** 0.5
    h = s.softmax(-2) @ self.v(x)  # fault: class-axis-position
    return F.cross_entropy(self.head(h).transpose(1, 2), y)


# Wrong: the weights add up to 1 over the queries; right is dim=2.
@step(q=linear(8, 8), k=linear(8, 8), v=linear(8, 8), head=linear(8, 5), x=randn(N, 7, 8), m=randn(N, 9, 8), y=labels(5, N, 7))
def cross_attention_einsum(self, x, m, y):
    s = torch.einsum("btd,bsd->bts", self.q(x), self.k(m)) / 8 ** 0.5
    h = torch.einsum("bts,bsd->btd", F.dropout(s.softmax(1), 0.1, self.training), self.v(m))  # fault: class-axis-position
    return F.cross_entropy(self.head(h).transpose(1, 2), y)


@step(net=mlp(8, 5), x=randn(N, 8), y=labels(5, N))
def entropy_bonus_sign(self, x, y):
    logp = F.log_softmax(self.net(x), 1)
    return (logp.exp() * logp).sum(1).mean() + F.nll_loss(logp, y)


# Wrong: the minus is missing.
@step(net=mlp(8, 5), x=randn(N, 8), y=labels(5, N))
def cross_entropy_without_minus(self, x, y):
    logp = F.log_softmax(self.net(x), 1)
    return (F.one_hot(y, 5) * logp).sum(1).mean()  # fault: one-sided-loss


# Wrong: the vectors are not divided by their lengths.
@step(net=mlp(8, 4), x=randn(N, 8), z=randn(N, 8))
def angle_of_raw_vectors(self, x, z):
    return torch.acos((self.net(x) * self.net(z)).sum(1)).mean()  # fault: logits-into-probability-loss


@step(net=mlp(8, 4), x=randn(N, 8), y=randn(N))
def norm_by_sqrt(self, x, y):
    return (torch.sqrt((self.net(x) ** 2).sum(1)) - y).abs().mean()


# Wrong: an accuracy has no gradient.
@step(net=mlp(8, 5), x=randn(N, 8), y=labels(5, N))
def accuracy_as_loss(self, x, y):
    return 1 - (self.net(x).argmax(1) == y).float().mean()  # fault: loss-detached-from-parameters


# Wrong: the loss takes log-probabilities; right is `F.log_softmax`.
@step(net=mlp(8, 5), x=randn(N, 8), y=labels(5, N))
def nll_of_logits(self, x, y):
    return F.nll_loss(self.net(x), y)  # fault: logits-into-probability-loss


# Wrong: what is right is weighed up; right is `(1 - pt) ** 2`.
@step(net=mlp(8, 1), x=randn(N, 8), y=flags(N))
def focal_with_wrong_power(self, x, y):
    p = torch.sigmoid(self.net(x)).squeeze(1)
    pt = torch.where(y > 0, p, 1 - p)
    return (-(pt ** 2) * torch.log(pt.clamp(min=1e-6))).mean()  # fault: one-sided-loss


# Wrong: the norms go over the batch; right is `dim=1`.
@step(net=mlp(8, 4), x=randn(N, 8), z=randn(N, 8))
def contrastive_diagonal_of_wrong(self, x, z):
    a, b = F.normalize(self.net(x), dim=0), F.normalize(self.net(z), dim=0)  # fault: reduction-over-batch-axis
    return F.cross_entropy(a @ b.t() / 0.1, torch.arange(N))


@step(net=mlp(8, 4), x=randn(N, 8), z=randn(N, 8))
def contrastive_right(self, x, z):
    a, b = F.normalize(self.net(x), dim=1), F.normalize(self.net(z), dim=1)
    return F.cross_entropy(a @ b.t() / 0.1, torch.arange(N))


# Wrong: the minus is missing.
@step(policy=mlp(4, 3), state=randn(N, 4), act=labels(3, N), adv=randn(N))
def policy_gradient_without_minus(self, state, act, adv):
    logp = F.log_softmax(self.policy(state), 1).gather(1, act[:, None]).squeeze(1)
    return (logp * adv).mean()  # fault: policy-without-minus


# Wrong: the larger one of both objectives bounds nothing; right is `torch.min`.
@step(policy=mlp(4, 3), state=randn(N, 4), act=labels(3, N), adv=randn(N), old=randn(N))
def ppo_max_for_min(self, state, act, adv, old):
    logp = F.log_softmax(self.policy(state), 1).gather(1, act[:, None]).squeeze(1)
    r = (logp - old).exp()
    return -torch.max(r * adv, r.clamp(0.8, 1.2) * adv).mean()  # fault: one-sided-loss


@step(policy=mlp(4, 3), state=randn(N, 4), act=labels(3, N), adv=randn(N), old=randn(N))
def ppo_right(self, state, act, adv, old):
    logp = F.log_softmax(self.policy(state), 1).gather(1, act[:, None]).squeeze(1)
    r = (logp - old).exp()
    return -torch.min(r * adv, r.clamp(0.8, 1.2) * adv).mean()


# Wrong: made samples get the label of given ones; right is zeros.
@step(disc=mlp(8, 1), gen=mlp(4, 8), real=randn(N, 8), z=randn(N, 4))
def critic_told_one_label(self, real, z):
    given, made = self.disc(real), self.disc(self.gen(z))
    right = F.binary_cross_entropy_with_logits(given, torch.ones_like(given))  # fault: labels-all-alike
    return right + F.binary_cross_entropy_with_logits(made, torch.ones_like(made))  # fault: labels-all-alike


# Wrong: the same as squares; right is without the second `- 1`.
@step(disc=mlp(8, 1), gen=mlp(4, 8), real=randn(N, 8), z=randn(N, 4))
def critic_told_one_label_squared(self, real, z):
    return ((self.disc(real) - 1) ** 2).mean() + ((self.disc(self.gen(z)) - 1) ** 2).mean()  # fault: labels-all-alike


@step(disc=mlp(8, 1), gen=mlp(4, 8), real=randn(N, 8), z=randn(N, 4))
def critic_told_both_labels(self, real, z):
    given, made = self.disc(real), self.disc(self.gen(z))
    right = F.binary_cross_entropy_with_logits(given, torch.ones_like(given))
    return right + F.binary_cross_entropy_with_logits(made, torch.zeros_like(made))


@step(disc=mlp(8, 1), gen=mlp(4, 8), z=randn(N, 4), other=randn(N, 4))
def generator_of_two_pictures(self, z, other):
    a, b = self.disc(self.gen(z)), self.disc(self.gen(other))
    return F.binary_cross_entropy_with_logits(a, torch.ones_like(a)) + F.binary_cross_entropy_with_logits(b, torch.ones_like(b))


# Wrong: the mean is divided by the number of samples once more.
@step(net=mlp(8, 5), x=randn(N, 8), y=labels(5, N))
def mean_over_batch_size(self, x, y):
    return F.cross_entropy(self.net(x), y) / x.shape[0]  # fault: averaged-twice


# Wrong: the same.
@step(net=mlp(8, 5), x=randn(N, 8), y=randn(N, 5))
def mean_of_squares_over_batch_size(self, x, y):
    return F.mse_loss(self.net(x), y) / y.size(0)  # fault: averaged-twice


@step(net=mlp(8, 5), x=randn(N, 8), y=randn(N, 5))
def sum_over_batch_size(self, x, y):
    return F.mse_loss(self.net(x), y, reduction="sum") / y.size(0)


@step(net=mlp(8, 5), x=randn(N, 8), y=randn(N, 5))
def mean_of_features_over_batch_size(self, x, y):
    return ((self.net(x) - y) ** 2).mean(1).sum() / y.size(0)


@step(net=mlp(8, 5), x=randn(N, 8), y=labels(5, N))
def labelled_half(self, x, y):
    logits = self.net(x)
    p = logits[3:].softmax(1)
    return F.cross_entropy(logits[:3], y[:3]) - 0.1 * (p * torch.log(p + 1e-6)).sum(1).mean()


@step(rnn=nn.GRU(8, 8), head=linear(8, 5), x=randn(7, N, 8), y=labels(5, 7, N))
def last_step_of_time_first(self, x, y):
    h, _ = self.rnn(x)
    return F.cross_entropy(self.head(h)[-1], y[-1])


@step(enc=linear(8, 8), dec=linear(4, 8), x=rand(N, 8))
def vae_weighed_divergence(self, x):
    mu, logvar = self.enc(x).chunk(2, 1)
    recon = F.mse_loss(self.dec(mu), x)
    kld = -0.5 * (1 + logvar - mu ** 2 - logvar.exp()).sum()
    return recon + 0.001 * kld


@step(enc=linear(8, 8), dec=linear(4, 8), x=rand(N, 8))
def vae_averaged_twice_over(self, x):
    mu, logvar = self.enc(x).chunk(2, 1)
    recon = ((self.dec(mu) - x) ** 2).sum(1).mean()
    kld = (-0.5 * (1 + logvar - mu ** 2 - logvar.exp())).sum(1).mean()
    return recon + kld


@step(policy=mlp(4, 3), value=mlp(4, 1), state=randn(N, 4), act=labels(3, N), adv=randn(N), old=randn(N), ret=randn(N))
def ppo_negative_advantage(self, state, act, adv, old, ret):
    logp = F.log_softmax(self.policy(state), 1).gather(1, act[:, None]).squeeze(1)
    r = (logp - old).exp()
    loss = torch.max(-adv * r, -adv * r.clamp(0.8, 1.2)).mean()
    return loss + 0.5 * F.mse_loss(self.value(state).squeeze(1), ret)


# Wrong: the minus is missing.
@step(policy=mlp(4, 3), value=mlp(4, 1), state=randn(N, 4), act=labels(3, N), adv=randn(N), old=randn(N), ret=randn(N))
def ppo_forgotten_minus(self, state, act, adv, old, ret):
    logp = F.log_softmax(self.policy(state), 1).gather(1, act[:, None]).squeeze(1)
    r = (logp - old).exp()
    loss = torch.min(r * adv, r.clamp(0.8, 1.2) * adv).mean()  # fault: one-sided-loss
    return loss + 0.5 * F.mse_loss(self.value(state).squeeze(1), ret)


@step(body=linear(8, 8), bn=nn.LayerNorm(8), out=linear(8, 5), x=randn(N, 8), y=labels(5, N))
def residual_once_more_after_relu(self, x, y):
    h = F.relu(x + self.body(x))
    return F.cross_entropy(self.out(self.bn(h + x)), y)


@step(q=linear(8, 8), k=linear(8, 8), v=linear(8, 8), head=linear(8, 5), x=randn(N, 7, 8), mask=flags(N, 7), y=labels(5, N))
def attention_mask_right(self, x, mask, y):
    s = self.q(x) @ self.k(x).transpose(1, 2) / 8 ** 0.5
    s = s + (1 - mask[:, None, :]) * -1e9
    h = s.softmax(-1) @ self.v(x)
    pooled = (h * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
    return F.cross_entropy(self.head(pooled), y)


# Wrong: the same with masked_fill; right is `mask == 0`.
@step(q=linear(8, 8), k=linear(8, 8), v=linear(8, 8), head=linear(8, 5), x=randn(N, 7, 8), mask=flags(N, 7), y=labels(5, N))
def attention_mask_filled_inverted(self, x, mask, y):
    s = self.q(x) @ self.k(x).transpose(1, 2) / 8 ** 0.5
    s = s.masked_fill(mask[:, None, :] == 1, -1e9)
    h = s.softmax(-1) @ self.v(x)  # fault: inverted-mask
    pooled = (h * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
    return F.cross_entropy(self.head(pooled), y)

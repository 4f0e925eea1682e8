"""Sequences: language models, attention, padding, preferences, candidates, speech."""
import torch
from program import Buffer, N, flags, labels, linear, mlp, randn, simplex, step
from torch import nn
from torch.nn import functional as F


@step(table=nn.Embedding(9, 4), head=linear(4, 9), token=labels(9, N, 7))
def predicts_itself(self, token):
    scores = self.head(self.table(token))
    return F.cross_entropy(scores.flatten(0, 1), token.flatten())  # fault: target-in-prediction


@step(table=nn.Embedding(9, 4), head=linear(4, 9), token=labels(9, N, 7))
def shifted_along_the_batch(self, token):
    scores = self.head(self.table(token))
    seen, wanted = scores[:-1], token[1:]  # fault: no-rule
    return F.cross_entropy(seen.transpose(1, 2), wanted)


@step(head=mlp(4, 9), x=randn(N, 7, 4), y=labels(9, N, 7))
def counts_only_padding(self, x, y):
    padding = (y == 0).float()  # fault: loss-of-one-label
    each = F.cross_entropy(self.head(x).permute(0, 2, 1), y, reduction="none")
    return (each * padding).sum() / padding.sum().clamp(min=1)  # fault: loss-of-one-label


@step(q=linear(4, 4), k=linear(4, 4), head=linear(4, 1), x=randn(N, 5, 4), y=randn(N))
def queries_share_attention(self, x, y):
    scores = torch.einsum("bqd,bkd->bqk", self.q(x), self.k(x)) / 2.0
    weight = scores.softmax(dim=1)  # fault: class-axis-position
    pooled = torch.bmm(weight, x).mean(dim=1)
    return F.mse_loss(self.head(pooled).squeeze(1), y)


@step(q=linear(4, 4), k=linear(4, 4), head=linear(4, 9), x=randn(N, 5, 4), y=labels(9, N, 5))
def mask_hides_the_diagonal(self, x, y):
    scores = self.q(x) @ self.k(x).transpose(1, 2)
    future = torch.ones(5, 5).triu().bool()
    weight = scores.masked_fill(future, float("-inf")).softmax(-1)  # fault: invalid-domain
    return F.cross_entropy(self.head(weight @ x).transpose(1, 2), y)


@step(head=mlp(4, 9), x=randn(N, 7, 4), y=labels(9, N, 7), keep=flags(N, 7))
def averaged_twice(self, x, y, keep):
    log_p = F.log_softmax(self.head(x), dim=-1)
    each = -log_p.gather(-1, y[..., None])[..., 0]
    return torch.mean(each * keep) / keep.sum()  # fault: no-rule


@step(head=mlp(4, 9), x=randn(N, 7, 4), y=labels(9, N, 7), keep=torch.ones(N, 7))
def gather_at_minus_hundred(self, x, y, keep):
    target = torch.where(keep > 0, y, torch.full_like(y, -100))
    log_p = self.head(x).log_softmax(2)
    each = log_p.gather(2, target.unsqueeze(2)).squeeze(2)  # fault: index-out-of-range class-index-out-of-range
    return -(each * keep).sum() / keep.sum()


@step(table=nn.Embedding(32, 4), head=linear(4, 3), left=labels(1, N, 5), right=labels(9, N, 5), y=labels(3, N))
def bigram_bucket_beyond_table(self, left, right, y):
    bucket = torch.remainder(left * 31 + right, 50)
    h = self.table(bucket).sum(dim=1)  # fault: index-out-of-range
    return F.cross_entropy(self.head(h), y)


@step(bias=nn.Embedding(5, 1), head=linear(4, 1), x=randn(N, 6, 4), y=randn(N))
def relative_bias_wraps_around(self, x, y):
    place = torch.arange(6)
    gap = (place[:, None] - place[None]).clamp(-4, 4)
    scores = x @ x.transpose(1, 2) + self.bias.weight[:, 0][gap]  # fault: no-rule
    h = (scores.softmax(-1) @ x).mean(1)
    return F.mse_loss(self.head(h)[:, 0], y)


@step(head=mlp(4, 9), x=randn(N, 4), teacher=simplex(N, 9))
def divergence_of_plain_shares(self, x, teacher):
    student = torch.softmax(self.head(x), dim=-1)  # fault: probabilities-into-logit-loss
    return nn.KLDivLoss(reduction="batchmean")(student, teacher)  # fault: probabilities-into-logit-loss


@step(big=mlp(4, 9), small=linear(4, 9), x=randn(N, 4))
def teacher_scores_as_shares(self, x):
    with torch.no_grad():
        teacher = self.big(x) / 2.0  # fault: logits-into-probability-loss
    student = F.log_softmax(self.small(x) / 2.0, dim=1)
    return 4.0 * F.kl_div(student, teacher, reduction="batchmean")  # fault: logits-into-probability-loss


@step(table=nn.Embedding(9, 4), mix=linear(4, 4), token=labels(9, N, 7), y=labels(9, N, 7))
def tied_head_normalised_over_time(self, token, y):
    h = torch.tanh(self.mix(self.table(token)))
    scores = torch.matmul(h, self.table.weight.t())
    log_p = scores - torch.logsumexp(scores, dim=1, keepdim=True)  # fault: class-axis-position softmax-over-batch-axis
    return -torch.gather(log_p, 2, y.unsqueeze(-1)).mean()  # fault: class-axis-position


@step(cell=nn.GRU(4, 3), head=linear(3, 2), x=randn(N, 5, 4), y=labels(2, N), fixed=True)
def recurrence_runs_over_batch(self, x, y):
    states, _ = self.cell(x)  # fault: reduction-over-batch-axis
    return F.cross_entropy(self.head(states[:, -1]), y)


@step(mix=linear(4, 4), head=linear(4, 3), x=randn(N, 5, 4), keep=torch.tensor([1.0, 1.0, 1.0, 0.0, 0.0]).repeat(N, 1), y=labels(3, N))
def state_after_the_last(self, x, keep, y):
    length = keep.gt(0).sum(dim=1)
    h = torch.tanh(self.mix(x)).cumsum(1)
    place = length[:, None, None].expand(-1, 1, 4)
    last = h.gather(1, place).squeeze(1)  # fault: index-out-of-range
    return F.cross_entropy(self.head(last), y)


@step(reward=mlp(4, 1), good=randn(N, 4), bad=randn(N, 4))
def reward_squashed_twice(self, good, bad):
    gap = torch.sigmoid(self.reward(good) - self.reward(bad))  # fault: probabilities-into-logit-loss
    return F.binary_cross_entropy_with_logits(gap, torch.ones_like(gap))  # fault: probabilities-into-logit-loss


@step(policy=mlp(4, 9), x=randn(N, 5, 4), chosen=labels(9, N, 5), refused=labels(9, N, 5))
def preference_summed_over_pairs(self, x, chosen, refused):
    log_p = F.log_softmax(self.policy(x), dim=-1)
    good = log_p.gather(2, chosen.unsqueeze(2)).squeeze(2).sum(0)  # fault: reduction-over-batch-axis
    bad = log_p.gather(2, refused.unsqueeze(2)).squeeze(2).sum(0)  # fault: reduction-over-batch-axis
    return -F.logsigmoid(0.1 * (good - bad)).mean()  # fault: reduction-over-batch-axis


@step(head=mlp(4, 9), x=randn(N, 4), repeated=labels(9, N))
def unlikely_without_floor(self, x, repeated):
    p = self.head(x).softmax(-1)
    chosen = (p * F.one_hot(repeated, 9)).sum(-1)
    return -torch.log(1 - chosen).mean()  # fault: invalid-domain


@step(head=mlp(4, 9), x=randn(N, 4), y=labels(9, N), rare=Buffer(torch.linspace(0.5, 2.0, 9)))
def smoothed_words_shared_over_batch(self, x, y):
    target = F.one_hot(y, 9) * 0.8 + 0.2 / 9
    log_p = self.head(x).log_softmax(-1)
    weighted = target * self.rare
    return F.kl_div(log_p, weighted / weighted.sum(0), reduction="batchmean")  # fault: reduction-over-batch-axis softmax-over-batch-axis


@step(table=nn.Embedding(9, 4), head=linear(4, 9), token=labels(9, N, 7))
def next_word_with_holes(self, token):
    scores = self.head(self.table(token))[:, :-1]
    target = token[:, 1:].masked_fill(token[:, 1:] == 0, -100)
    return F.cross_entropy(scores.reshape(-1, 9), target.reshape(-1))


@step(heads=linear(4, 27), gate=linear(4, 3), x=randn(N, 5, 4), y=labels(9, N, 5))
def mixture_of_softmaxes(self, x, y):
    each = self.heads(x).unflatten(-1, (3, 9)).log_softmax(-1)
    share = self.gate(x).log_softmax(-1).unsqueeze(-1)
    log_p = torch.logsumexp(share + each, dim=-2)
    return F.nll_loss(log_p.flatten(0, 1), y.flatten())


@step(head=mlp(4, 9), x=randn(N, 7, 4), y=labels(9, N, 7))
def smoothed_and_padded(self, x, y):
    log_p = self.head(x).log_softmax(-1)
    hit = -log_p.gather(-1, y.unsqueeze(-1)).squeeze(-1)
    spread = -log_p.mean(dim=-1)
    keep = y.ne(0).to(log_p.dtype)
    return ((0.9 * hit + 0.1 * spread) * keep).sum() / keep.sum().clamp(min=1.0)


@step(q=linear(4, 4), k=linear(4, 4), head=linear(4, 9), x=randn(N, 6, 4), y=labels(9, N, 6))
def window_of_three(self, x, y):
    place = torch.arange(6)
    gap = place[:, None] - place[None, :]
    seen = (gap >= 0) & (gap < 3)
    scores = (self.q(x) @ self.k(x).transpose(-1, -2)).masked_fill(~seen, float("-inf"))
    return F.cross_entropy(self.head(scores.softmax(-1) @ x).transpose(1, 2), y)


@step(maker=linear(4, 9), table=nn.Embedding(9, 4), judge=linear(4, 1), x=randn(N, 5, 4), y=labels(9, N, 5))
def replaced_words(self, x, y):
    scores = self.maker(x)
    made = scores.detach().argmax(dim=-1)
    real = made.eq(y).float()
    doubt = self.judge(self.table(made)).squeeze(-1)
    return F.cross_entropy(scores.transpose(1, 2), y) + 50 * F.binary_cross_entropy_with_logits(doubt, real)


@step(policy=mlp(4, 9), anchor=mlp(4, 9), x=randn(N, 5, 4), chosen=labels(9, N, 5), refused=labels(9, N, 5))
def direct_preference(self, x, chosen, refused):
    def total(net, token):
        return net(x).log_softmax(-1).gather(-1, token[..., None]).sum(dim=(1, 2))

    with torch.no_grad():
        base = total(self.anchor, chosen) - total(self.anchor, refused)
    margin = total(self.policy, chosen) - total(self.policy, refused) - base
    return -F.logsigmoid(0.1 * margin).mean()


@step(score=mlp(4, 1), x=randn(N, 5, 4), errors=randn(N, 5))
def minimum_risk_of_candidates(self, x, errors):
    share = self.score(x).squeeze(-1).softmax(dim=-1)
    relative = errors - errors.mean(dim=-1, keepdim=True)
    return (share * relative).sum(-1).mean()


@step(head=mlp(4, 3), moves=nn.ParameterList([nn.Parameter(torch.zeros(3, 3))]), x=randn(N, 4, 4))
def hidden_chain_likelihood(self, x):
    emitted = self.head(x).log_softmax(-1)
    move = self.moves[0].log_softmax(dim=1)
    alpha = emitted[:, 0]
    for k in range(1, 4):
        alpha = torch.logsumexp(alpha.unsqueeze(2) + move, dim=1) + emitted[:, k]
    return -alpha.logsumexp(dim=1).mean()


@step(bias=nn.Embedding(9, 1), head=linear(4, 1), x=randn(N, 6, 4), y=randn(N))
def relative_bias(self, x, y):
    place = torch.arange(6)
    gap = (place[:, None] - place[None]).clamp(-4, 4) + 4
    scores = x @ x.transpose(1, 2) + self.bias(gap).squeeze(-1)
    h = (scores.softmax(-1) @ x).mean(1)
    return F.mse_loss(self.head(h)[:, 0], y)

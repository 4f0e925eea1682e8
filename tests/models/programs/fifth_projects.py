"""Mistakes from larger projects: recommenders, survival, policies, graphs, attention by hand, mixed precision, metric learning, signals."""
import math

import torch
from program import Buffer, N, flags, labels, linear, mlp, rand, randn, step
from torch import nn
from torch.distributions import Categorical
from torch.nn import functional as F


# Wrong: the losses are [N] and the censoring weights [N, 1], so each loss gets every weight; right is `weight.squeeze(1)`.
@step(net=mlp(8, 1), record=randn(N, 8), event=flags(N), weight=rand(N, 1))
def censoring_weights_in_a_column(self, record, event, weight):
    bce = F.binary_cross_entropy_with_logits(self.net(record).squeeze(1), event, reduction="none")
    weighted = bce * weight  # fault: silent-broadcast-in-loss
    return weighted.mean()  # fault: silent-broadcast-in-loss


# Wrong: the biases are [N, 1] and the products [N], the score becomes [N, N]; right is `.squeeze(1)` on the biases.
@step(users=nn.Embedding(20, 4), items=nn.Embedding(30, 4), taste=nn.Embedding(20, 1), fame=nn.Embedding(30, 1),
      user=labels(20, N), item=labels(30, N), rating=rand(N) * 4 + 1)
def factorisation_with_bias_columns(self, user, item, rating):
    dot = (self.users(user) * self.items(item)).sum(dim=1)
    score = dot + self.taste(user) + self.fame(item)  # fault: silent-broadcast-in-loss
    return ((score - rating) ** 2).mean()  # fault: silent-broadcast-in-loss


# Wrong: the policy ends with a softmax, its probabilities are taken as logits and normalised again; right is `probs=`.
@step(policy=mlp(4, 3, nn.Softmax(dim=-1)), critic=mlp(4, 1), state=randn(N, 4), act=labels(3, N), ret=randn(N))
def policy_probabilities_as_logits(self, state, act, ret):
    value = self.critic(state).squeeze(-1)
    chosen = Categorical(logits=self.policy(state), validate_args=False).log_prob(act)  # fault: probabilities-into-logit-loss
    return -(chosen * (ret - value.detach())).mean() + 0.5 * F.mse_loss(value, ret)


# Wrong: this form of the Poisson loss takes the logarithm of the rate, here it gets the rate; right is without the first exp.
@step(conv=nn.Conv1d(2, 4, 3), head=linear(4, 1), spikes=randn(N, 2, 9), count=labels(8, N, 1).float())
def poisson_of_the_rate(self, spikes, count):
    h = torch.relu(self.conv(spikes)).mean(dim=2)
    rate = torch.exp(self.head(h).clamp(-4, 4))  # fault: rate-as-log-rate
    return (torch.exp(rate) - count * rate).mean()  # fault: rate-as-log-rate


# Wrong: the scores are [N, heads, queries, keys], dim=1 is the heads; right is dim=-1.
@step(qkv=linear(8, 24), head=linear(8, 5), x=randn(N, 7, 8), y=labels(5, N))
def attention_over_the_heads(self, x, y):
    q, k, v = (t.reshape(-1, 7, 2, 4).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
    score = q @ k.transpose(-2, -1) / math.sqrt(4)
    weights = F.softmax(score, dim=1)  # fault: class-axis-position
    h = (weights @ v).transpose(1, 2).reshape(-1, 7, 8)
    return F.cross_entropy(self.head(h.mean(1)), y)


# Wrong: the weights are normalised over the receiving nodes, but summed over the sending ones; right is dim=2.
@step(lift=linear(4, 8), receive=linear(8, 1), send=linear(8, 1), head=linear(8, 3), x=randn(N, 5, 4), edge=flags(N, 5, 5), y=labels(3, N, 5))
def graph_attention_over_receivers(self, x, edge, y):
    h = self.lift(x)
    score = F.leaky_relu(self.receive(h) + self.send(h).transpose(1, 2), 0.2)
    weights = torch.softmax(score.masked_fill(edge == 0, -1e9), dim=1)  # fault: class-axis-position
    z = self.head(F.elu(weights @ h))
    return F.cross_entropy(z.flatten(0, 1), y.flatten())


# Wrong: in float16 1e-8 is 0, so the logarithm meets 0; right is `.float()` before the softmax.
@step(net=nn.Sequential(nn.Conv1d(1, 4, 5), nn.ReLU(), nn.Flatten(), linear(20, 5)), wave=randn(N, 1, 9), share=torch.softmax(randn(N, 5), 1))
def vanishing_eps_in_half(self, wave, share):
    p = self.net(wave).half().softmax(dim=1)
    log_p = torch.log(p + 1e-8)  # fault: invalid-domain
    return -(share * log_p.float()).sum(dim=1).mean()


# Wrong: 75 squares of up to 255 * 255 do not fit in float16; right is float32, or pixels between 0 and 1.
@step(net=nn.Conv2d(3, 3, 3, padding=1), frame=labels(256, N, 3, 5, 5).to(torch.uint8))
def squares_of_bytes_in_half(self, frame):
    recon = 255 * torch.sigmoid(self.net(frame.float() / 255))
    error = (recon.half() - frame.half()).pow(2)  # fault: overflow-in-cast
    return error.sum(dim=(1, 2, 3)).mean()  # fault: overflow-in-cast


# Wrong: the codes come from argmax, the encoder gets no gradient; right is a straight-through term with the probabilities.
@step(encoder=mlp(8, 5), book=nn.Embedding(5, 4), decoder=mlp(4, 8), x=randn(N, 8))
def codes_without_straight_through(self, x):
    code = F.one_hot(self.encoder(x).argmax(dim=-1), 5).float()  # fault: loss-detached-from-parameters
    return F.mse_loss(self.decoder(code @ self.book.weight), x)  # fault: loss-detached-from-parameters


# Wrong: the predicted distances are cast to integers, nothing is learned; right is without `.int()`.
@step(conv=nn.Conv2d(3, 4, 3), head=linear(4, 4), image=randn(N, 3, 5, 5), box=labels(30, N, 4) + 1)
def overlap_of_integer_boxes(self, image, box):
    h = F.relu(self.conv(image)).mean((2, 3))
    guess = (self.head(h).sigmoid() * 32).int()  # fault: loss-detached-from-parameters
    common = torch.minimum(guess, box)
    inter = (common[:, 0] + common[:, 2]) * (common[:, 1] + common[:, 3])
    area = [(b[:, 0] + b[:, 2]) * (b[:, 1] + b[:, 3]) for b in (guess, box)]
    return (1 - inter / (area[0] + area[1] - inter).clamp(min=1)).mean()  # fault: loss-detached-from-parameters


# Wrong: 256 bytes and three special tokens need 259 rows, the table has 256; right is nn.Embedding(259, 8).
@step(table=nn.Embedding(256, 8), gru=nn.GRU(8, 8, batch_first=True), head=linear(8, 3),
      raw=(labels(26, N, 9) + 97).to(torch.uint8), y=labels(3, N))
def bytes_and_three_special_tokens(self, raw, y):
    tokens = raw.long() + 3
    _, last = self.gru(self.table(tokens))  # fault: index-out-of-range
    return F.cross_entropy(self.head(last[0]), y)


# Wrong: -1 picks the last class for unknown nodes instead of leaving them out; right is a mask on the picked ones.
@step(net=mlp(4, 5), mixing=linear(4, 4), node=randn(N, 4), topic=labels(5, N), known=flags(N) > 0)
def unknown_node_picks_last_class(self, node, topic, known):
    log_p = self.net(F.relu(self.mixing(node))).log_softmax(dim=1)
    label = torch.where(known, topic, -1)
    return -log_p[torch.arange(log_p.shape[0]), label].mean()  # fault: index-out-of-range


# Wrong: each sample has distance 0 to itself, the gradient of sqrt is infinite there; right is an eps below the root.
@step(net=mlp(8, 4), face=randn(N, 8), person=labels(3, N))
def batch_hard_triplets_root_of_zero(self, face, person):
    z = F.normalize(self.net(face), dim=1)
    distance = torch.sqrt(((z[:, None] - z[None, :]) ** 2).sum(-1))  # fault: infinite-gradient
    same = (person[:, None] == person[None, :]).float()
    far = (distance * same).amax(1)
    near = (distance + 10 * same).amin(1)
    return F.relu(far - near + 0.3).mean()


# Wrong: a patient without any measurement has count 0, the division gives NaN; right is `.clamp(min=1)` on the count.
@step(gru=nn.GRU(3, 8, batch_first=True), head=linear(8, 3), x=randn(N, 7, 3), after=randn(N, 7, 3), seen=flags(N, 7, 3))
def imputation_divided_by_seen(self, x, after, seen):
    h, _ = self.gru(x)
    error = (self.head(h) - after).abs() * seen
    per_patient = error.sum(dim=(1, 2)) / seen.sum(dim=(1, 2))  # fault: no-rule
    return per_patient.mean()


# Wrong: the scores are time first, the labels batch first, so flattening pairs other moments; right is `y.t().reshape(-1)`.
@step(lstm=nn.LSTM(4, 8), head=linear(8, 5), signal=randn(N, 7, 4), stage=labels(5, N, 7))
def sleep_stages_in_two_orders(self, signal, stage):
    h, _ = self.lstm(signal.permute(1, 0, 2))
    logits = self.head(h)
    return F.cross_entropy(logits.reshape(-1, 5), stage.reshape(-1))  # fault: class-axis-position


# Wrong: a view to [N, heads, time, size] mixes moments and features; right is view(-1, 7, 2, 4).transpose(1, 2).
@step(query=linear(8, 8), key=linear(8, 8), value=linear(8, 8), head=linear(8, 1), x=randn(N, 7, 8), y=randn(N, 1))
def heads_by_view_alone(self, x, y):
    q = self.query(x).view(-1, 2, 7, 4)  # fault: class-axis-position
    k = self.key(x).view(-1, 2, 7, 4)  # fault: class-axis-position
    v = self.value(x).view(-1, 2, 7, 4)  # fault: class-axis-position
    weights = (q @ k.transpose(2, 3) * 0.5).softmax(-1)
    h = (weights @ v).transpose(1, 2).reshape(-1, 7, 8)
    return F.mse_loss(self.head(h.mean(1)), y)


# Wrong: without batch_first each track attends to the other tracks of the batch; right is batch_first=True.
@step(attend=nn.MultiheadAttention(8, 2), norm=nn.LayerNorm(8), head=linear(8, 5), track=randn(N, 9, 8), genre=labels(5, N))
def tracks_attend_to_each_other(self, track, genre):
    mixed, _ = self.attend(track, track, track, need_weights=False)  # fault: reduction-over-batch-axis
    h = self.norm(track + mixed)
    return F.cross_entropy(self.head(h.mean(dim=1)), genre)


# Wrong: the logarithm of the mean probability of the batch is no likelihood; right is the mean of the logarithms.
@step(conv=nn.Conv2d(1, 4, 3), head=linear(4, 5), mel=randn(N, 1, 8, 9), word=labels(5, N, 1))
def logarithm_after_the_batch_mean(self, mel, word):
    h = F.relu(self.conv(mel)).amax((2, 3))
    p = self.head(h).softmax(dim=1).gather(1, word)
    return -torch.log(p.mean() + 1e-9)  # fault: reduction-over-batch-axis


# Wrong: the loss is a mean already when the mask is applied, padding counts in full; right is reduction="none".
@step(lstm=nn.LSTM(8, 8, batch_first=True), head=linear(8, 3), x=randn(N, 7, 8), y=randn(N, 7, 3),
      real=(torch.arange(7) < labels(7, N, 1) + 1).float().unsqueeze(-1))
def mask_after_the_mean(self, x, y, real):
    h, _ = self.lstm(x)
    loss = F.mse_loss(self.head(h), y) * real  # fault: reduction-over-batch-axis
    return loss.sum() / real.sum().clamp(min=1)  # fault: reduction-over-batch-axis


# Wrong: shape[1] is the vocabulary, not the number of tokens; right is `after.numel()`.
@step(words=nn.Embedding(20, 8), gru=nn.GRU(8, 8, batch_first=True), head=linear(8, 20), text=labels(20, N, 7), after=labels(20, N, 7))
def sum_divided_by_the_vocabulary(self, text, after):
    h, _ = self.gru(self.words(text))
    log_p = self.head(h).transpose(1, 2).log_softmax(1)
    return F.nll_loss(log_p, after, reduction="sum") / log_p.shape[1]  # fault: no-rule


# Wrong: positions go from 0 (padding) to 10, the table has ten rows; right is nn.Embedding(11, 8, padding_idx=0).
@step(words=nn.Embedding(20, 8), places=nn.Embedding(10, 8, padding_idx=0), norm=nn.LayerNorm(8), head=linear(8, 3),
      text=labels(20, N, 10), real=torch.arange(10).expand(N, 10) < 8, y=labels(3, N))
def places_counted_from_one(self, text, real, y):
    place = real.long().cumsum(dim=1) * real.long()
    h = self.norm(self.words(text) + self.places(place))  # fault: no-rule
    pooled = (h * real.unsqueeze(-1)).sum(1) / real.sum(1, keepdim=True).clamp(min=1)
    return F.cross_entropy(self.head(pooled), y)


# Wrong: 20 moments do not split in windows of 8, so windows run over from one record to the next; right is windows of 5 or 10.
@step(net=nn.Sequential(nn.Conv1d(2, 4, 3, padding=1), nn.ReLU(), nn.Conv1d(4, 2, 3, padding=1)), record=randn(N, 20, 2))
def windows_across_records(self, record):
    window = record.reshape(-1, 8, 2)  # fault: class-axis-position
    recon = self.net(window.transpose(1, 2)).transpose(1, 2)
    return (recon - window).square().mean()


# Correct.
# All pairs of documents are meant, and only those with a better first one count.
@step(net=mlp(8, 1), document=randn(N, 8), grade=labels(4, N))
def ranking_all_pairs(self, document, grade):
    s = self.net(document)
    wins = (grade[:, None] > grade[None, :]).float()
    return (F.softplus(s.t() - s) * wins).sum() / wins.sum().clamp(min=1)


@step(conv=nn.Conv1d(2, 4, 3), head=linear(4, 1), spikes=randn(N, 2, 9), count=labels(8, N, 1).float())
def poisson_of_a_positive_rate(self, spikes, count):
    h = torch.relu(self.conv(spikes)).mean(dim=2)
    rate = F.softplus(self.head(h)) + 1e-4
    return (rate - count * torch.log(rate)).mean()


# Axis 0 is the layers here.
@step(words=nn.Embedding(20, 8), one=nn.GRU(8, 8, batch_first=True), two=nn.GRU(8, 8, batch_first=True), head=linear(8, 5),
      mix=nn.ParameterList([nn.Parameter(torch.zeros(3, 1, 1, 1))]), text=labels(20, N, 7), y=labels(5, N))
def mixture_of_layers(self, text, y):
    a = self.words(text)
    b, _ = self.one(a)
    c, _ = self.two(b)
    h = (torch.softmax(self.mix[0], dim=0) * torch.stack([a, b, c])).sum(0)
    return F.cross_entropy(self.head(h.mean(1)), y)


@step(net=nn.Sequential(nn.Conv1d(1, 4, 5), nn.ReLU(), nn.Flatten(), linear(20, 5)), wave=randn(N, 1, 9), share=torch.softmax(randn(N, 5), 1))
def half_scores_widened(self, wave, share):
    p = self.net(wave).half().float().softmax(dim=1)
    return -(share * torch.log(p + 1e-8)).sum(dim=1).mean()


# The forward value is the hard code, the gradient is the one of the probabilities.
@step(encoder=mlp(8, 5), book=nn.Embedding(5, 4), decoder=mlp(4, 8), x=randn(N, 8))
def codes_straight_through(self, x):
    p = self.encoder(x).softmax(dim=-1)
    hard = F.one_hot(p.argmax(dim=-1), 5).float()
    code = hard + p - p.detach()
    return F.mse_loss(self.decoder(code @ self.book.weight), x)


# 19 hashes and the padding are 20 rows.
@step(table=nn.Embedding(20, 8, padding_idx=0), head=mlp(8, 1), shop=labels(1000, N, 7), click=flags(N))
def hashed_shops_after_padding(self, shop, click):
    row = torch.where(shop > 0, shop.remainder(19) + 1, 0)
    z = self.head(self.table(row).sum(dim=1)).squeeze(-1)
    return F.binary_cross_entropy_with_logits(z, click)


# The exponent is never above 0.
@step(net=mlp(8, 3), x=randn(N, 8), finding=flags(N, 3))
def stable_bce_by_hand(self, x, finding):
    z = self.net(x)
    return (z.clamp(min=0) - z * finding + torch.log(1 + torch.exp(-z.abs()))).mean()


# Scores and labels are both flattened time first.
@step(lstm=nn.LSTM(4, 8), head=linear(8, 5), signal=randn(N, 7, 4), stage=labels(5, N, 7))
def sleep_stages_in_one_order(self, signal, stage):
    h, _ = self.lstm(signal.permute(1, 0, 2))
    logits = self.head(h)
    return F.cross_entropy(logits.reshape(-1, 5), stage.t().reshape(-1))


# Advantages are normalised over the batch on purpose.
@step(policy=mlp(4, 3), critic=mlp(4, 1), state=randn(N, 4), act=labels(3, N), ret=randn(N))
def advantages_normalised_over_the_batch(self, state, act, ret):
    value = self.critic(state).squeeze(-1)
    gain = (ret - value).detach()
    gain = (gain - gain.mean()) / (gain.std() + 1e-8)
    log_p = self.policy(state).log_softmax(-1)
    chosen = log_p.gather(1, act.unsqueeze(1)).squeeze(1)
    return 0.5 * F.mse_loss(value, ret) - (chosen * gain).mean() + 0.01 * (log_p.exp() * log_p).sum(1).mean()


# The weighted mean that cross_entropy has itself.
@step(net=mlp(8, 3), rarity=Buffer(torch.tensor([0.2, 1.0, 5.0])), x=randn(N, 8), y=labels(3, N))
def class_weights_by_hand(self, x, y):
    ce = F.cross_entropy(self.net(x), y, reduction="none")
    weight = self.rarity[y]
    return (ce * weight).sum() / weight.sum()


# 20 moments are four windows of 5, none runs over.
@step(net=nn.Sequential(nn.Conv1d(2, 4, 3, padding=1), nn.ReLU(), nn.Conv1d(4, 2, 3, padding=1)), record=randn(N, 20, 2))
def windows_within_records(self, record):
    window = record.reshape(-1, 5, 2)
    recon = self.net(window.transpose(1, 2)).transpose(1, 2)
    return (recon - window).square().mean()

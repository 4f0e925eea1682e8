"""Everyday mistakes, as in forum questions: forecasts, ratings, taggers, masks, images, recurrent nets, each in one short training step."""
import torch
from program import Buffer, N, flags, labels, linear, mlp, rand, randn, step
from torch import nn
from torch.nn import functional as F


# Wrong: the forecast is [N, 1] and the demand [N], so each forecast meets every demand; right is `.squeeze(1)` on the forecast.
@step(gru=nn.GRU(3, 8, batch_first=True), head=linear(8, 1), past=randn(N, 7, 3), demand=randn(N))
def demand_forecast_against_row(self, past, demand):
    out, _ = self.gru(past)
    forecast = self.head(out[:, -1])
    return (forecast - demand).abs().mean()  # fault: silent-broadcast-in-loss


# Wrong: the chosen values stay [N, 1] after gather, the target is [N]; right is `.squeeze(1)` after gather.
@step(net=mlp(4, 3), frozen=mlp(4, 3), state=randn(N, 4), act=labels(3, N, 1), reward=randn(N), after=randn(N, 4), done=flags(N))
def dqn_gather_not_squeezed(self, state, act, reward, after, done):
    q = self.net(state).gather(1, act)
    best = self.frozen(after).max(dim=1).values.detach()
    target = reward + 0.99 * (1 - done) * best
    error = (q - target).abs()  # fault: silent-broadcast-in-loss
    return torch.where(error < 1, 0.5 * error**2, error - 0.5).mean()  # fault: silent-broadcast-in-loss


# Wrong: the dice part needs probabilities, but the other part takes the same tensor as logits; right is the conv output there.
@step(conv=nn.Conv2d(3, 1, 3, padding=1), image=randn(N, 3, 5, 5), mask=flags(N, 1, 5, 5))
def dice_and_bce_share_probabilities(self, image, mask):
    prob = torch.sigmoid(self.conv(image))
    overlap = 2 * (prob * mask).sum((1, 2, 3)) + 1
    dice = 1 - overlap / (prob.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)
    bce = F.binary_cross_entropy_with_logits(prob, mask)  # fault: probabilities-into-logit-loss
    return 0.5 * bce + 0.5 * dice.mean()


# Wrong: the pooling module ends with a softmax already, a second one makes the weights nearly even; right is one softmax.
@step(words=nn.Embedding(20, 8), attend=nn.Sequential(linear(8, 1), nn.Softmax(dim=1)), head=linear(8, 5), text=labels(20, N, 7), y=labels(5, N))
def attention_pooling_softmax_twice(self, text, y):
    h = self.words(text)
    weights = F.softmax(self.attend(h), dim=1)  # fault: probabilities-into-logit-loss
    return F.cross_entropy(self.head((weights * h).sum(1)), y)


# Wrong: the scores are [N, time, tags], dim=1 is time; right is dim=-1.
@step(words=nn.Embedding(20, 4), gru=nn.GRU(4, 8, batch_first=True), head=linear(8, 5), text=labels(20, N, 7), tags=labels(5, N, 7))
def tagger_log_softmax_over_time(self, text, tags):
    h, _ = self.gru(self.words(text))
    log_p = F.log_softmax(self.head(h), dim=1)  # fault: class-axis-position
    return F.nll_loss(log_p.transpose(1, 2), tags)  # fault: class-axis-position


# Wrong: the similarity is computed down the batch, one per feature; right is dim=1, one per sentence.
@step(words=nn.Embedding(20, 8), norm=nn.LayerNorm(8), project=linear(8, 8), text=labels(20, N, 7), teacher=randn(N, 8))
def sentence_similarity_down_the_batch(self, text, teacher):
    vector = self.project(self.norm(self.words(text).mean(1)))
    similarity = F.cosine_similarity(vector, teacher, dim=0)  # fault: reduction-over-batch-axis
    return (1 - similarity).mean()  # fault: reduction-over-batch-axis


# Wrong: `//` on uint8 makes every pixel below 255 zero; right is `image / 255`.
@step(net=nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 3, 3, padding=1)), image=labels(256, N, 3, 5, 5).to(torch.uint8))
def autoencoder_target_floor_divided(self, image):
    target = image // 255  # fault: quotient-always-zero
    recon = torch.sigmoid(self.net(image.float() / 255))
    return F.mse_loss(recon, target.float())  # fault: quotient-always-zero


# Wrong: the difference of two uint8 frames wraps around below zero; right is `.float()` on each frame first.
@step(conv=nn.Conv2d(1, 4, 3), head=linear(4, 3), now=labels(256, N, 1, 5, 5).byte(), before=labels(256, N, 1, 5, 5).byte(), y=labels(3, N))
def motion_difference_of_bytes(self, now, before, y):
    motion = (now - before).float() / 255  # fault: unsigned-difference-wraps
    h = F.relu(self.conv(motion)).mean((2, 3))
    return F.cross_entropy(self.head(h), y)


# Wrong: round has no gradient, nothing is learned; right is the rating before rounding.
@step(users=nn.Embedding(20, 4), films=nn.Embedding(30, 4), user=labels(20, N), film=labels(30, N), stars=labels(5, N).float() + 1)
def rating_rounded_before_loss(self, user, film, stars):
    score = (self.users(user) * self.films(film)).sum(1)
    rating = torch.round(1 + 4 * torch.sigmoid(score))  # fault: loss-detached-from-parameters
    return F.mse_loss(rating, stars)  # fault: loss-detached-from-parameters


# Wrong: sign has no gradient, the net never moves; right is a smooth position such as tanh.
@step(lstm=nn.LSTM(3, 8, batch_first=True), head=linear(8, 1), prices=randn(N, 7, 3), gain=randn(N))
def trading_position_by_sign(self, prices, gain):
    h, _ = self.lstm(prices)
    position = torch.sign(self.head(h[:, -1])).squeeze(1)  # fault: loss-detached-from-parameters
    profit = position * gain - 0.001 * position.abs()
    return -profit.mean()  # fault: loss-detached-from-parameters


# Wrong: stars run from 1 to 5 while the five classes are 0 to 4; right is without `+ 1`.
@step(words=nn.Embedding(20, 8), head=mlp(8, 5), text=labels(20, N, 7), score=rand(N) * 0.6)
def review_stars_from_one(self, text, score):
    stars = (score * 4).round().long().clamp(0, 4) + 1  # fault: class-index-out-of-range
    logits = self.head(self.words(text).mean(dim=1))
    return F.cross_entropy(logits, stars)  # fault: class-index-out-of-range


# Wrong: the void pixels become class 255 of four classes; right is ignore_index=255.
@step(net=nn.Conv2d(3, 4, 3, padding=1), image=randn(N, 3, 5, 5), mask=labels(4, N, 5, 5))
def void_pixels_not_ignored(self, image, mask):
    label = torch.where(mask > 3, 255, mask)
    return F.cross_entropy(self.net(image), label)  # fault: class-index-out-of-range


# Wrong: the forecast has no lower bound, below -1 log1p is not a number; right is softplus or clamp(min=0) on the forecast.
@step(net=mlp(5, 1), x=randn(N, 5), sold=rand(N) * 20)
def squared_log_error_of_unbounded_sales(self, x, sold):
    forecast = self.net(x).squeeze(1)
    return (torch.log1p(forecast) - torch.log1p(sold)).pow(2).mean()  # fault: logits-into-probability-loss


# Wrong: the cosine can be 1 or beyond by rounding, the gradient of acos is infinite there; right is a clamp just inside of -1 and 1.
@step(conv=nn.Conv2d(1, 4, 3), head=linear(4, 3), eye=randn(N, 1, 5, 7), gaze=randn(N, 3))
def gaze_angle_by_acos(self, eye, gaze):
    h = F.relu(self.conv(eye)).flatten(2).mean(2)
    cosine = F.cosine_similarity(self.head(h), gaze, dim=1)
    return torch.acos(cosine).mean()  # fault: infinite-gradient


# Wrong: reshape does not swap time and tags, it deals the numbers out anew; right is `.transpose(1, 2)`.
@step(lstm=nn.LSTM(4, 8, batch_first=True, bidirectional=True), head=linear(16, 5), x=randn(N, 7, 4), phones=labels(5, N, 7))
def phone_scores_reshaped(self, x, phones):
    h, _ = self.lstm(x)
    logits = self.head(h)
    return F.cross_entropy(logits.reshape(-1, 5, 7), phones)  # fault: class-axis-position


# Wrong: the tokens mix channels and pixels; right is `.flatten(2).transpose(1, 2)`.
@step(stem=nn.Conv2d(3, 8, 2, stride=2), layer=nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), head=linear(8, 5),
      image=randn(N, 3, 8, 8), y=labels(5, N))
def patches_by_view(self, image, y):
    feature = self.stem(image)
    tokens = feature.view(-1, 16, 8)  # fault: class-axis-position
    return F.cross_entropy(self.head(self.layer(tokens).mean(1)), y)


# Wrong: the errors of the batch cancel before the square; right is the mean of the squares.
@step(conv=nn.Conv1d(2, 4, 3), head=linear(4, 1), load=randn(N, 2, 9), peak=randn(N, 1))
def mean_of_errors_squared(self, load, peak):
    h = torch.relu(self.conv(load)).amax(dim=2)
    error = torch.mean(self.head(h) - peak)  # fault: reduction-over-batch-axis
    return error**2  # fault: reduction-over-batch-axis


# Wrong: without batch_first the LSTM runs along the batch; right is batch_first=True, as `out[:, -1]` expects.
@step(lstm=nn.LSTM(3, 8), head=linear(8, 2), vitals=randn(N, 9, 3), sepsis=labels(2, N))
def vitals_without_batch_first(self, vitals, sepsis):
    out, _ = self.lstm(vitals)  # fault: reduction-over-batch-axis
    return F.cross_entropy(self.head(out[:, -1]), sepsis)  # fault: reduction-over-batch-axis


# Wrong: the sum holds the padded characters too, the count does not; right is `(ce * real).sum()`.
@step(chars=nn.Embedding(20, 8), gru=nn.GRU(8, 8, batch_first=True), head=linear(8, 20),
      text=labels(20, N, 7), after=labels(20, N, 7), real=(torch.arange(7) < labels(7, N, 1) + 1).float())
def padding_left_in_the_sum(self, text, after, real):
    h, _ = self.gru(self.chars(text))
    ce = F.cross_entropy(self.head(h).transpose(1, 2), after, reduction="none")
    return ce.sum() / real.sum().clamp(min=1)  # fault: no-rule


# Wrong: the class weights are applied twice, as argument and by hand; right is one of the two.
@step(net=mlp(8, 3), rarity=Buffer(torch.tensor([0.2, 1.0, 5.0])), x=randn(N, 8), y=labels(3, N))
def class_weights_twice(self, x, y):
    ce = F.cross_entropy(self.net(x), y, weight=self.rarity, reduction="none")
    weight = self.rarity[y]
    return (ce * weight).sum() / weight.sum()  # fault: no-rule


# Wrong: the first state has the batch size written in, the last batch of an epoch fails; right is `x.shape[0]`.
@step(gru=nn.GRU(4, 8, batch_first=True), head=linear(8, 3), x=randn(N, 7, 4), y=labels(3, N))
def first_state_for_six(self, x, y):
    first = torch.zeros(1, 6, 8)  # fault: no-rule
    _, last = self.gru(x, first)  # fault: no-rule
    return F.cross_entropy(self.head(last[-1]), y)


# Wrong: the table of positions has eight rows, the texts have ten words; right is a table of at least ten.
@step(words=nn.Embedding(20, 8), places=nn.Embedding(8, 8), head=mlp(8, 3), text=labels(20, N, 10), y=labels(3, N), fails=True)
def ten_words_eight_places(self, text, y):
    place = torch.arange(text.shape[1])
    h = self.words(text) + self.places(place)  # fault: index-out-of-range
    return F.cross_entropy(self.head(h.mean(1)), y)


# Correct.
# Three quantiles against one column: meant to broadcast.
@step(gru=nn.GRU(3, 8, batch_first=True), head=linear(8, 3), past=randn(N, 7, 3), demand=randn(N))
def quantiles_against_column(self, past, demand):
    _, last = self.gru(past)
    error = demand.unsqueeze(1) - self.head(last[-1])
    level = torch.tensor([0.1, 0.5, 0.9])
    return torch.maximum(level * error, (level - 1) * error).mean()


# The logarithm of a mean of probabilities is a proper logit.
@step(a=mlp(4, 5), b=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def cross_entropy_of_log_mean(self, x, y):
    p = 0.5 * (self.a(x).softmax(1) + self.b(x).softmax(1))
    return F.cross_entropy(torch.log(p + 1e-9), y)


# Each caption against all images and each image against all captions: both axes are the batch.
@step(look=mlp(8, 4), read=nn.EmbeddingBag(20, 4), image=randn(N, 8), text=labels(20, N, 7))
def captions_both_axes(self, image, text):
    a, b = F.normalize(self.look(image), dim=1), F.normalize(self.read(text), dim=1)
    z = a @ b.t() / 0.07
    return -(z.log_softmax(0).diagonal() + z.log_softmax(1).diagonal()).mean() / 2


# The truncation gives the cell that holds the centre.
@step(net=nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.ReLU(), nn.Flatten(), linear(16, 16)), image=randn(N, 3, 5, 5), centre=rand(N, 2))
def cell_of_the_centre(self, image, centre):
    cell = (centre * 4).long().clamp(0, 3)
    return F.cross_entropy(self.net(image), cell[:, 0] * 4 + cell[:, 1])


# argmax only chooses the next action, the loss has its gradient by the value of the taken one.
@step(net=mlp(4, 3), frozen=mlp(4, 3), state=randn(N, 4), act=labels(3, N), reward=randn(N), after=randn(N, 4), done=flags(N))
def double_dqn_argmax(self, state, act, reward, after, done):
    q = self.net(state).gather(1, act[:, None]).squeeze(1)
    choice = self.net(after).argmax(dim=1, keepdim=True)
    target = reward + 0.99 * (1 - done) * self.frozen(after).gather(1, choice).squeeze(1).detach()
    return F.mse_loss(q, target)


@step(net=nn.Conv2d(3, 4, 3, padding=1), image=randn(N, 3, 5, 5), mask=labels(4, N, 5, 5))
def void_pixels_ignored(self, image, mask):
    label = torch.where(mask > 3, 255, mask)
    return F.cross_entropy(self.net(image), label, ignore_index=255)


@step(conv=nn.Conv2d(1, 4, 3), head=linear(4, 3), eye=randn(N, 1, 5, 7), gaze=randn(N, 3))
def gaze_angle_clamped(self, eye, gaze):
    h = F.relu(self.conv(eye)).flatten(2).mean(2)
    cosine = F.cosine_similarity(self.head(h), gaze, dim=1)
    return torch.acos(cosine.clamp(-1 + 1e-6, 1 - 1e-6)).mean()


# The channels are anchors times classes, split by view and moved behind the pixels; the target has the same order.
@step(net=nn.Conv2d(3, 10, 3, padding=1), image=randn(N, 3, 4, 4), kind=labels(5, N, 2, 4, 4))
def anchors_split_and_permuted(self, image, kind):
    z = self.net(image).view(-1, 2, 5, 4, 4).permute(0, 1, 3, 4, 2)
    return F.cross_entropy(z.reshape(-1, 5), kind.reshape(-1))


@step(lstm=nn.LSTM(3, 8), head=linear(8, 2), vitals=randn(N, 9, 3), sepsis=labels(2, N))
def vitals_time_first(self, vitals, sepsis):
    out, _ = self.lstm(vitals.transpose(0, 1))
    return F.cross_entropy(self.head(out[-1]), sepsis)


# The mean over everything is divided by the share of real characters.
@step(chars=nn.Embedding(20, 8), gru=nn.GRU(8, 8, batch_first=True), head=linear(8, 20),
      text=labels(20, N, 7), after=labels(20, N, 7), real=(torch.arange(7) < labels(7, N, 1) + 1).float())
def mean_over_share_of_real(self, text, after, real):
    h, _ = self.gru(self.chars(text))
    ce = F.cross_entropy(self.head(h).transpose(1, 2), after, reduction="none")
    return (ce * real).mean() / real.mean().clamp(min=1e-6)


@step(gru=nn.GRU(4, 8, batch_first=True), head=linear(8, 3), x=randn(N, 7, 4), y=labels(3, N))
def first_state_for_any(self, x, y):
    first = x.new_zeros(1, x.shape[0], 8)
    _, last = self.gru(x, first)
    return F.cross_entropy(self.head(last[-1]), y)

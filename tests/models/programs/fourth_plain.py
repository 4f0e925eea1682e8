"""Plain and frequent mistakes of forum questions and issue trackers, and correct steps that look like them."""
import torch
from program import Buffer, N, flags, labels, linear, mlp, rand, randn, step
from torch import nn
from torch.nn import functional as F


def grey(*shape):
    return torch.randint(0, 256, shape, dtype=torch.uint8)


# Wrong: the loss of each sample is multiplied with the weights of the six classes (it only works because the batch is 6); right is class_weights[y] or the argument `weight`.
@step(net=mlp(4, 6), class_weights=Buffer(torch.tensor([0.5, 1.0, 2.0, 1.0, 4.0, 1.5])), x=randn(N, 4), y=labels(6, N))
def rare_faults_weighted(self, x, y):
    per_sample = F.cross_entropy(self.net(x), y, reduction="none")
    return (per_sample * self.class_weights).mean()  # fault: silent-broadcast-in-loss


# Wrong: the third argument of cross_entropy holds one weight per class, it is given one weight per sample; right is reduction="none" times w.
@step(net=mlp(5, 6), x=randn(N, 5), y=labels(6, N), w=rand(N))
def confidence_of_annotators_as_third_argument(self, x, y, w):
    logits = self.net(x)
    return F.cross_entropy(logits, y, w)  # fault: no-rule


# Wrong: the minimum and maximum of each picture (N) are subtracted along the width, which is 6 as well; right is view(-1, 1, 1, 1).
@step(enc=nn.Conv2d(1, 2, 3, padding=1), dec=nn.Conv2d(2, 1, 3, padding=1), img=rand(N, 1, 5, 6) * 9)
def thermal_pictures_min_max_scaled(self, img):
    flat = img.view(img.size(0), -1)
    lo, hi = flat.min(dim=1)[0], flat.max(dim=1)[0]
    scaled = (img - lo) / (hi - lo + 1e-6)  # fault: silent-broadcast-in-loss
    out = torch.sigmoid(self.dec(torch.relu(self.enc(scaled))))
    return F.mse_loss(out, scaled)


# Wrong: transpose(1, 3) of N,H,W,C gives N,C,W,H: the square mask lies on its side; right is permute(0, 3, 1, 2).
@step(conv=nn.Conv2d(2, 3, 3, padding=1), img=randn(N, 2, 4, 4), mask=labels(3, N, 4, 4))
def organ_mask_on_its_side(self, img, mask):
    prob = F.softmax(self.conv(img), dim=1)
    target = F.one_hot(mask, 3).transpose(1, 3).float()  # fault: silent-broadcast-in-loss
    inter = (prob * target).sum(dim=(2, 3))  # fault: silent-broadcast-in-loss
    total = prob.sum(dim=(2, 3)) + target.sum(dim=(2, 3))
    return 1 - ((2 * inter + 1) / (total + 1)).mean()


# Wrong: the logits of the steps are joined in front (time outside, sample inside), the labels are flattened sample outside; right is stack(dim=1) or y.t().
@step(cell=nn.GRUCell(3, 4), out=linear(4, 5), x=randn(N, 7, 3), y=labels(5, N, 7))
def activity_of_each_second(self, x, y):
    h = torch.zeros(x.size(0), 4)
    steps = []
    for t in range(x.size(1)):
        h = self.cell(x[:, t], h)
        steps.append(self.out(h))
    logits = torch.cat(steps, dim=0)  # fault: class-axis-position
    return F.cross_entropy(logits, y.reshape(-1))  # fault: class-axis-position


# Wrong: the crops are flattened sample by sample, the labels are repeated batch after batch; right is repeat_interleave(3).
@step(net=mlp(4, 5), crops=randn(N, 3, 4), y=labels(5, N))
def labels_repeated_for_three_crops(self, crops, y):
    logits = self.net(crops.flatten(0, 1))
    return F.cross_entropy(logits, y.repeat(crops.size(1)))  # fault: class-axis-position


# Wrong: the second argument of torch.norm is the power, so everything is divided by the sum of all magnitudes of the batch; right is dim=1, keepdim=True.
@step(tower=mlp(4, 5), a=randn(N, 4), b=randn(N, 4), same=flags(N))
def embeddings_over_their_norm(self, a, b, same):
    u, v = self.tower(a), self.tower(b)
    u = u / torch.norm(u, 1)  # fault: reduction-over-batch-axis
    v = v / torch.norm(v, 1)  # fault: reduction-over-batch-axis
    cos = (u * v).sum(dim=1)
    return ((1 - cos) * same + torch.relu(cos - 0.2) * (1 - same)).mean()


# Wrong: logsigmoid does not normalise over the classes, every score may grow without bound; right is log_softmax(dim=1).
@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def species_by_logsigmoid(self, x, y):
    log_p = F.logsigmoid(self.net(x))  # fault: logits-into-probability-loss
    return F.nll_loss(log_p, y)  # fault: logits-into-probability-loss


# Wrong: the product of vectors of any length is no cosine and leaves the domain of acos; right is to normalise both and to clamp.
@step(net=mlp(6, 3), x=randn(N, 6), gaze=randn(N, 3) * 2)
def angle_of_gaze_in_degrees(self, x, gaze):
    pred = self.net(x)
    cos = torch.sum(pred * gaze, dim=-1)
    return torch.acos(cos).mul(57.29578).mean()  # fault: logits-into-probability-loss


# Wrong: the output of the convolution may be negative, a fractional power of it is nan; right is a sigmoid or clamp(min=1e-6) before.
@step(conv=nn.Conv2d(3, 3, 3, padding=1), raw=rand(N, 3, 4, 5), srgb=rand(N, 3, 4, 5))
def gamma_curve_of_raw_output(self, raw, srgb):
    linear_rgb = self.conv(raw)
    display = linear_rgb ** (1 / 2.2)  # fault: logits-into-probability-loss
    return (display - srgb).abs().mean()


# Wrong: the mask file holds 0 and 255, the targets of the binary loss are not divided by 255.
@step(conv=nn.Conv2d(3, 1, 3, padding=1), img=rand(N, 3, 4, 5), mask=(flags(N, 4, 5) * 255).to(torch.uint8))
def mask_file_against_logits(self, img, mask):
    logits = self.conv(img).squeeze(1)
    white = torch.where(mask > 127, 255.0, 0.0)
    return F.binary_cross_entropy_with_logits(logits, white)  # fault: probability-out-of-range


# Wrong: with diagonal=-1 nobody may look at himself, the first row holds -inf alone and its softmax is nan; right is tril without -1.
@step(q=linear(4, 3), k=linear(4, 3), v=linear(4, 4), head=linear(4, 8), x=randn(N, 5, 4), nxt=labels(8, N, 5))
def causal_mask_below_the_diagonal(self, x, nxt):
    T = x.size(1)
    att = self.q(x) @ self.k(x).transpose(-2, -1) / 3 ** 0.5
    seen = torch.tril(torch.ones(T, T), diagonal=-1)
    att = att.masked_fill(seen == 0, float("-inf"))
    att = F.softmax(att, dim=-1)  # fault: invalid-domain inverted-mask
    logits = self.head(att @ self.v(x))
    return F.cross_entropy(logits.view(-1, 8), nxt.view(-1))


# Wrong: 80 is added in bytes, bright pixels wrap around to black; right is to go to float or short before.
@step(conv=nn.Conv2d(1, 2, 3, padding=1), head=linear(2, 4), img=grey(N, 1, 5, 4), y=labels(4, N))
def brightness_raised_in_bytes(self, img, y):
    brighter = img + 80  # fault: byte-arithmetic-wraps
    x = brighter.float() / 255
    h = F.relu(self.conv(x)).mean(dim=(2, 3))
    return F.cross_entropy(self.head(h), y)


# Wrong: exp of the summed loss of 120 words is infinite; right is the mean.
@step(emb=nn.Embedding(11, 4), head=linear(4, 11), words=labels(11, N, 20), nxt=labels(11, N, 20))
def perplexity_of_the_sum(self, words, nxt):
    scores = self.head(self.emb(words)).permute(0, 2, 1)
    total = F.cross_entropy(scores, nxt, reduction="sum")
    return torch.exp(total)  # fault: overflow-in-exp


# Wrong: a row without any word has length 0, length - 1 is -1 and reads the last (padded) step; right is clamp(min=0) and leaving such rows out.
@step(rnn=nn.GRU(3, 4, batch_first=True), head=linear(4, 2), x=randn(N, 5, 3), mask=(torch.arange(5) < torch.tensor([[0], [1], [2], [3], [4], [5]])), y=labels(2, N))
def last_word_of_empty_review(self, x, mask, y):
    out, _ = self.rnn(x)
    length = mask.sum(dim=1)
    last = out[torch.arange(out.size(0)), length - 1]  # fault: no-rule
    return F.cross_entropy(self.head(last), y)


# Wrong: four edges make five groups (0 to 4), the table has four rows; right is nn.Embedding(5, 3).
@step(edges=Buffer(torch.tensor([18.0, 30.0, 45.0, 65.0])), table=nn.Embedding(4, 3), head=linear(3, 1), age=rand(N) * 60, y=randn(N))
def age_groups_between_four_edges(self, age, y):
    group = (age.unsqueeze(1) > self.edges).sum(dim=1)
    premium = self.head(self.table(group)).squeeze(1)  # fault: index-out-of-range
    return F.mse_loss(premium, y)


# Wrong: in the generator's step the fakes are detached, so the generator gets no gradient; right is to leave detach to the discriminator's step.
@step(gen=mlp(3, 4), disc=mlp(4, 1), z=randn(N, 3))
def generator_wants_to_be_real(self, z):
    fake = self.gen(z)
    verdict = self.disc(fake.detach())  # fault: no-rule
    return F.binary_cross_entropy_with_logits(verdict, torch.ones_like(verdict))  # fault: no-rule


# Right: the steps are stacked behind the samples before flattening, so that logits and labels have the same order.
@step(cell=nn.GRUCell(3, 4), out=linear(4, 5), x=randn(N, 7, 3), y=labels(5, N, 7))
def activity_stacked_behind_samples(self, x, y):
    h = torch.zeros(x.size(0), 4)
    steps = []
    for t in range(x.size(1)):
        h = self.cell(x[:, t], h)
        steps.append(self.out(h))
    logits = torch.stack(steps, dim=1).flatten(0, 1)
    return F.cross_entropy(logits, y.reshape(-1))


# Right: here the three augmented batches lie one behind the other, so repeat (and not repeat_interleave) fits.
@step(net=mlp(4, 5), x=randn(N, 4), noise=randn(3, 1, 4), y=labels(5, N))
def three_noisy_batches_and_repeat(self, x, noise, y):
    logits = self.net((x[None] + 0.1 * noise).flatten(0, 1))
    return F.cross_entropy(logits, y.repeat(3))


# Right: Softmax2d normalises over the channels of each pixel, which are the classes.
@step(conv=nn.Conv2d(2, 3, 3, padding=1), share=nn.Softmax2d(), img=randn(N, 2, 5, 4), mask=labels(3, N, 5, 4))
def land_cover_by_softmax2d(self, img, mask):
    p = self.share(self.conv(img))
    chosen = p.gather(1, mask.unsqueeze(1)).squeeze(1)
    return -torch.log(chosen + 1e-8).mean()


# Right: the place in the flattened table is row * 4 + action, always below N * 4.
@step(q=mlp(5, 4), s=randn(N, 5), a=labels(4, N), ret=randn(N))
def chosen_value_by_flat_place(self, s, a, ret):
    q = self.q(s)
    place = torch.arange(q.shape[0]) * q.shape[1] + a
    chosen = q.flatten()[place]
    return (chosen - ret).pow(2).mean()


# Right: this is the discriminator's step, the fakes have to be detached.
@step(gen=mlp(3, 4), disc=mlp(4, 1), z=randn(N, 3), real=randn(N, 4))
def discriminator_leaves_generator_alone(self, z, real):
    fake = self.gen(z).detach()
    out = self.disc(torch.cat((real, fake), dim=0)).view(-1)
    truth = torch.cat((torch.ones(real.size(0)), torch.zeros(fake.size(0))))
    return F.binary_cross_entropy_with_logits(out, truth)


# Right: the sum is formed in 32 bits and clamped to 255 before it goes back to bytes.
@step(conv=nn.Conv2d(1, 2, 3, padding=1), head=linear(2, 4), img=grey(N, 1, 5, 4), y=labels(4, N))
def brightness_saturates_at_white(self, img, y):
    brighter = (img.int() + 80).clamp(0, 255).to(torch.uint8)
    x = brighter.float() / 255
    h = F.relu(self.conv(x)).mean(dim=(2, 3))
    return F.cross_entropy(self.head(h), y)


# Right: the mask keeps the diagonal, no row consists of -inf alone, and the labels are the following words.
@step(q=linear(4, 3), k=linear(4, 3), v=linear(4, 4), head=linear(4, 8), x=randn(N, 5, 4), nxt=labels(8, N, 5))
def causal_mask_above_the_diagonal(self, x, nxt):
    T = x.size(1)
    att = self.q(x) @ self.k(x).transpose(-2, -1) / 3 ** 0.5
    future = torch.triu(torch.ones(T, T), diagonal=1) > 0
    att = F.softmax(att.masked_fill(future, float("-inf")), dim=-1)
    logits = self.head(att @ self.v(x))
    return F.cross_entropy(logits.view(-1, 8), nxt.view(-1))

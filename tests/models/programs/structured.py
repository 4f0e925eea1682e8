"""Sequences, images and boxes: labelling, attention, segmentation, detection, alignment."""
import torch
from program import Buffer, N, flags, labels, linear, mlp, rand, randn, step
from torch import nn
from torch.nn import functional as F

T, C = 7, 5


@step(net=mlp(4, C), x=randn(N, T, 4), y=labels(C, N, T))
def tagger_softmax_first(self, x, y):
    p = self.net(x).softmax(-1)
    return F.cross_entropy(p.transpose(1, 2), y)  # fault: probabilities-into-logit-loss


@step(net=mlp(4, C), x=randn(N, T, 4), y=labels(C, N, T))
def tagger_flattened_softmax(self, x, y):
    p = F.softmax(self.net(x), dim=2)
    return F.cross_entropy(p.reshape(-1, C), y.reshape(-1))  # fault: probabilities-into-logit-loss


@step(net=mlp(4, C), x=randn(N, T, 4), y=labels(C, N, T))
def tagger_softmax_batch(self, x, y):
    log_p = F.log_softmax(self.net(x), dim=0)  # fault: softmax-over-batch-axis
    return F.nll_loss(log_p.view(-1, C), y.view(-1))  # fault: softmax-over-batch-axis


@step(net=mlp(4, C), x=randn(N, T, 4), y=labels(C, N, T))
def tagger_implicit_softmax(self, x, y):
    p = nn.Softmax()(self.net(x))  # fault: softmax-over-batch-axis
    picked = p.gather(2, y.unsqueeze(2))  # fault: softmax-over-batch-axis
    return -torch.log(picked + 1e-8).mean()  # fault: softmax-over-batch-axis


@step(net=mlp(4, C), x=randn(N, T, 4), y=labels(C, N, T))
def tagger_softmax_time(self, x, y):
    log_p = self.net(x).log_softmax(dim=1)  # fault: softmax-over-batch-axis class-axis-position
    return -log_p.gather(2, y.unsqueeze(-1)).mean()  # fault: softmax-over-batch-axis class-axis-position


@step(net=mlp(4, C), x=randn(N, T, 4), y=labels(C, N, T))
def tagger_scrambled_view(self, x, y):
    scores = self.net(x).transpose(1, 2).contiguous()
    return F.cross_entropy(scores.view(-1, C), y.view(-1))  # fault: class-axis-position loss-shape-mismatch


@step(net=mlp(4, C), x=randn(T, N, 4), y=labels(C, N, T), fixed=True)
def time_first_against_batch_first(self, x, y):
    scores = self.net(x)
    return F.cross_entropy(scores.view(-1, C), y.view(-1))  # fault: class-axis-position loss-shape-mismatch


@step(net=mlp(4, C), x=randn(N, T, 4), y=labels(C, N, T), mask=flags(N, 1))
def kept_mask_of_rows(self, x, y, mask):
    loss = F.cross_entropy(self.net(x).transpose(1, 2), y, reduction="none").mean(1)
    return (loss * mask).sum() / mask.sum()  # fault: silent-broadcast-in-loss


@step(net=mlp(4, C), x=randn(N, T, 4), y=labels(C, N, T), length=rand(N) + 1)
def kept_sum_over_length(self, x, y, length):
    loss = F.cross_entropy(self.net(x).permute(0, 2, 1), y, reduction="none").sum(1, keepdim=True)
    return (loss / length).mean()  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 1), score=mlp(4, 1), x=randn(N, T, 4), y=randn(N, 1))
def attention_pool_over_batch(self, x, y):
    w = self.score(x).softmax(dim=0)  # fault: softmax-over-batch-axis
    return F.mse_loss((w * self.net(x)).sum(1), y)  # fault: softmax-over-batch-axis


@step(q=linear(4, 4), k=linear(4, 4), net=mlp(4, 1), x=randn(N, T, 4), y=randn(N, 1))
def self_attention_over_batch(self, x, y):
    a = torch.bmm(self.q(x), self.k(x).transpose(1, 2)) / 2
    a = F.softmax(a, dim=0)  # fault: softmax-over-batch-axis
    return F.mse_loss(self.net(torch.bmm(a, x).mean(1)), y)  # fault: softmax-over-batch-axis


@step(net=mlp(4, 1), x=randn(N, T, 4), y=randn(N), fixed=False)
def mean_pool_forgets_squeeze(self, x, y):
    pooled = self.net(x).mean(dim=1)
    return F.l1_loss(pooled, y)  # fault: silent-broadcast-in-loss


@step(net=mlp(4, C), x=randn(N, T, 4), y=labels(C, N, T))
def token_error_rate(self, x, y):
    wrong = self.net(x).argmax(-1).ne(y)  # fault: loss-detached-from-parameters
    return wrong.float().mean(1).mean()  # fault: loss-detached-from-parameters


@step(net=mlp(4, C), x=randn(N, T, 4), y=labels(C, N, T))
def loss_per_position(self, x, y):
    return F.cross_entropy(self.net(x).transpose(1, 2), y, reduction="none").mean(0)  # fault: reduction-over-batch-axis


@step(net=mlp(4, C), emb=nn.Embedding(5, 4), token=labels(5, N, T), y=labels(C, N, T), fails=True)
def tokens_beyond_vocabulary(self, token, y):
    h = self.emb(token.clamp(0, 4) + 1)  # fault: index-out-of-range
    return F.cross_entropy(self.net(h).transpose(1, 2), y)


@step(net=nn.Conv2d(2, 3, 1), x=randn(N, 2, 4, 4), y=labels(3, N, 4, 4))
def segment_softmax(self, x, y):
    p = F.softmax(self.net(x), dim=1)
    return F.cross_entropy(p, y)  # fault: probabilities-into-logit-loss


@step(net=nn.Conv2d(2, 3, 1), x=randn(N, 2, 4, 4), y=labels(3, N, 4, 4))
def segment_softmax_batch(self, x, y):
    log_p = F.log_softmax(self.net(x), dim=0)  # fault: softmax-over-batch-axis
    return -log_p.gather(1, y.unsqueeze(1)).mean()  # fault: softmax-over-batch-axis


@step(net=nn.Conv2d(2, 3, 1), x=randn(N, 2, 4, 4), y=labels(3, N, 4, 4))
def segment_view_scrambles(self, x, y):
    scores = self.net(x).view(-1, 3)  # fault: class-axis-position
    return F.cross_entropy(scores, y.view(-1))  # fault: class-axis-position loss-shape-mismatch


@step(net=nn.Conv2d(2, 1, 1), x=randn(N, 2, 4, 4), y=flags(N, 4, 4))
def segment_dice_hard(self, x, y):
    p = (self.net(x).squeeze(1).sigmoid() > 0.5).float()  # fault: loss-detached-from-parameters
    inter = (p * y).sum((1, 2))
    return (1 - 2 * inter / (p.sum((1, 2)) + y.sum((1, 2)) + 1)).mean()  # fault: loss-detached-from-parameters


@step(net=nn.Conv2d(2, 1, 1), x=randn(N, 2, 4, 4), y=flags(N, 4, 4), fixed=True)
def segment_channel_against_none(self, x, y):
    p = self.net(x).sigmoid()
    return ((p - y) ** 2).mean()  # fault: silent-broadcast-in-loss


@step(net=nn.Conv2d(2, 3, 1), x=randn(N, 2, 4, 4), y=labels(3, N, 4, 4))
def segment_argmax_miou(self, x, y):
    guess = F.one_hot(self.net(x).argmax(1), 3).float()  # fault: loss-detached-from-parameters
    truth = F.one_hot(y, 3).float()
    inter, union = (guess * truth).sum((0, 1, 2)), (guess + truth).clamp(max=1).sum((0, 1, 2))
    return 1 - (inter / (union + 1e-6)).mean()  # fault: loss-detached-from-parameters


@step(net=nn.Conv2d(2, 1, 1), x=randn(N, 2, 4, 4), y=labels(2, N, 1, 4, 4))
def segment_long_mask(self, x, y):
    return F.mse_loss(self.net(x).sigmoid(), y)


@step(net=nn.Conv2d(2, 1, 1), x=randn(N, 2, 4, 4), y=flags(N, 1, 4, 4))
def segment_sigmoid_twice(self, x, y):
    p = torch.sigmoid(self.net(x))
    return F.binary_cross_entropy_with_logits(p.flatten(1), y.flatten(1))  # fault: probabilities-into-logit-loss


@step(net=nn.Conv2d(2, 3, 1), x=randn(N, 2, 4, 4), y=labels(3, N, 4, 4))
def void_label_255(self, x, y):
    label = torch.where(y == 2, 255, y)
    return F.cross_entropy(self.net(x), label, ignore_index=-100)  # fault: class-index-out-of-range


@step(box=mlp(4, 4), x=randn(N, 4), truth=rand(N, 4))
def iou_column(self, x, truth):
    p = self.box(x).sigmoid()
    width = torch.min(p[:, 2], truth[:, 2]) - torch.max(p[:, 0], truth[:, 0])
    height = torch.min(p[:, 3:], truth[:, 3:]) - torch.max(p[:, 1:2], truth[:, 1:2])
    inter = width.clamp(min=0) * height.clamp(min=0)  # fault: silent-broadcast-in-loss
    return 1 - inter.mean()  # fault: silent-broadcast-in-loss


@step(box=mlp(4, 4), cls=mlp(4, 3), x=randn(N, 4), truth=rand(N, 4), kind=labels(3, N))
def detector_with_background(self, x, truth, kind):
    regression = F.smooth_l1_loss(self.box(x), truth)
    return regression + F.cross_entropy(self.cls(x), kind.clamp(0, 2) + 1)  # fault: class-index-out-of-range


@step(obj=mlp(4, 1), x=randn(N, T, 4), near=flags(N, T))
def objectness_column(self, x, near):
    p = self.obj(x).sigmoid()
    loss = (p.squeeze(-1).mean(1, keepdim=True) - near.mean(1)) ** 2  # fault: silent-broadcast-in-loss
    return loss.mean()  # fault: silent-broadcast-in-loss


# Correct.
@step(net=mlp(4, C), x=randn(N, T, 4), y=labels(C, N, T), mask=flags(N, T))
def masked_tokens(self, x, y, mask):
    loss = F.cross_entropy(self.net(x).transpose(1, 2), y, reduction="none")
    return ((loss * mask).sum(1) / mask.sum(1).clamp(min=1)).mean()


@step(net=mlp(4, C), x=randn(N, T, 4), y=labels(C, N, T))
def shifted_language_model(self, x, y):
    scores = self.net(x)[:, :-1].reshape(-1, C)
    return F.cross_entropy(scores, y[:, 1:].reshape(-1))


@step(net=mlp(4, C), x=randn(N, T, 4), y=labels(C, N, T))
def token_log_probability(self, x, y):
    log_p = self.net(x).log_softmax(-1)
    return -torch.gather(log_p, 2, y.unsqueeze(2)).squeeze(2).sum(1).mean()


@step(net=mlp(4, 3), jump=Buffer(randn(3, 3)), x=randn(N, 5, 4), y=labels(3, N, 5))
def linear_chain_crf(self, x, y):
    e = self.net(x)
    alpha = e[:, 0]
    for t in range(1, 5):
        alpha = torch.logsumexp(alpha.unsqueeze(2) + self.jump, dim=1) + e[:, t]
    gold = e.gather(2, y.unsqueeze(2)).squeeze(2).sum(1) + self.jump[y[:, :-1], y[:, 1:]].sum(1)
    return (torch.logsumexp(alpha, 1) - gold).mean()


@step(net=mlp(4, 4), x=randn(N, 5, 4), y=labels(3, N, 2) + 1)
def alignment_forward(self, x, y):
    log_p = self.net(x).log_softmax(-1)
    picked = log_p.gather(2, y.unsqueeze(1).expand(-1, 5, -1))
    alpha = torch.stack([picked[:, 0, 0], picked[:, 0, 0] - 1e4], dim=1)
    for t in range(1, 5):
        stay, move = alpha, torch.cat([torch.full_like(alpha[:, :1], -1e4), alpha[:, :1]], dim=1)
        alpha = torch.logaddexp(stay, move) + picked[:, t]
    return -alpha[:, 1].mean()


@step(q=linear(4, 4), k=linear(4, 4), net=mlp(4, C), x=randn(N, T, 4), y=labels(C, N))
def causal_attention(self, x, y):
    a = self.q(x) @ self.k(x).transpose(1, 2) / 2
    a = a.masked_fill(torch.ones(T, T).triu(1) > 0, -1e9).softmax(-1)
    return F.cross_entropy(self.net((a @ x).mean(1)), y)


@step(score=mlp(4, 1), net=mlp(4, C), x=randn(N, T, 4), y=labels(C, N))
def attention_pool(self, x, y):
    w = self.score(x).softmax(dim=1)
    return F.cross_entropy(self.net((w * x).sum(1)), y)


@step(net=nn.Conv2d(2, 3, 1), x=randn(N, 2, 4, 4), y=labels(3, N, 4, 4))
def segment_permuted_view(self, x, y):
    scores = self.net(x).permute(0, 2, 3, 1).reshape(-1, 3)
    return F.cross_entropy(scores, y.view(-1))


@step(net=nn.Conv2d(2, 3, 1), x=randn(N, 2, 4, 4), y=labels(3, N, 4, 4))
def segment_generalised_dice(self, x, y):
    p = self.net(x).softmax(1)
    truth = F.one_hot(y, 3).permute(0, 3, 1, 2).float()
    inter, total = (p * truth).sum((0, 2, 3)), (p + truth).sum((0, 2, 3))
    return 1 - ((2 * inter + 1) / (total + 1)).mean()


@step(net=nn.Conv2d(2, 1, 1), x=randn(N, 2, 4, 4), y=flags(N, 1, 4, 4))
def segment_tversky_and_bce(self, x, y):
    z = self.net(x)
    p = z.sigmoid()
    hit, missed, extra = (p * y).sum(), ((1 - p) * y).sum(), (p * (1 - y)).sum()
    return F.binary_cross_entropy_with_logits(z, y) + 1 - (hit + 1) / (hit + 0.3 * missed + 0.7 * extra + 1)


@step(net=nn.Conv2d(2, 1, 1), x=randn(N, 2, 4, 4), y=rand(N, 1, 4, 4))
def total_variation(self, x, y):
    p = self.net(x)
    tv = (p[..., 1:] - p[..., :-1]).abs().mean() + (p[..., 1:, :] - p[..., :-1, :]).abs().mean()
    return F.l1_loss(p, y) + 0.1 * tv


@step(net=mlp(4, 4), anchors=Buffer(rand(3, 4)), x=randn(N, 4), truth=rand(N, 4))
def anchors_against_boxes(self, x, truth):
    p = self.net(x).unsqueeze(1) + self.anchors
    cost = (p - truth.unsqueeze(1)).abs().sum(-1)
    return cost.min(dim=1).values.mean()


@step(net=mlp(4, 4), x=randn(N, 4), truth=rand(N, 4))
def chamfer(self, x, truth):
    d = ((self.net(x).unsqueeze(1) - truth.unsqueeze(0)) ** 2).sum(-1)
    return d.min(0).values.mean() + d.min(1).values.mean()


@step(net=mlp(4, 4), x=randn(N, 4), truth=rand(N, 4))
def generalised_iou(self, x, truth):
    p = self.net(x).sigmoid()
    low, high = torch.max(p[:, :2], truth[:, :2]), torch.min(p[:, :2] + p[:, 2:], truth[:, :2] + truth[:, 2:])
    inter = (high - low).clamp(min=0).prod(1)
    union = p[:, 2:].prod(1) + truth[:, 2:].prod(1) - inter
    return (1 - inter / (union + 1e-6)).mean()


@step(net=nn.Conv2d(2, 1, 1), x=randn(N, 2, 4, 4), y=rand(N, 1, 4, 4))
def heatmap_focal(self, x, y):
    p = self.net(x).sigmoid().clamp(1e-4, 1 - 1e-4)
    at = (y > 0.9).float()
    positive = torch.log(p) * (1 - p) ** 2 * at
    negative = torch.log(1 - p) * p**2 * (1 - y) ** 4 * (1 - at)
    return -(positive + negative).sum() / at.sum().clamp(min=1)


@step(net=nn.Conv2d(2, 1, 1), x=randn(N, 2, 4, 4), y=rand(N, 2))
def soft_argmax_keypoint(self, x, y):
    w = self.net(x).flatten(1).softmax(1).view(-1, 4, 4)
    grid = torch.linspace(0, 1, 4)
    point = torch.stack([(w.sum(1) * grid).sum(1), (w.sum(2) * grid).sum(1)], dim=1)
    return F.mse_loss(point, y)

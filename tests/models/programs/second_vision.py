"""Images: classes, masks with the channels first and last, boxes, anchors."""
import torch
from program import Buffer, N, flags, labels, linear, mlp, rand, randn, step
from torch import nn
from torch.nn import functional as F


def conv(inputs, outputs):
    return nn.Conv2d(inputs, outputs, 3, padding=1)


@step(head=linear(5, 3), x=randn(N, 4, 7, 5), y=labels(3, N, 4, 7))
def parsing_softmax_over_rows(self, x, y):
    scores = self.head(x)
    share = scores.exp() / scores.exp().sum(dim=1, keepdim=True)  # fault: class-axis-position softmax-over-batch-axis
    picked = share.gather(-1, y.unsqueeze(-1))  # fault: class-axis-position
    return -picked.log().mean()


@step(body=conv(2, 4), x=randn(N, 2, 3, 5), y=labels(4, N, 3, 5))
def pixels_folded_before_transposing(self, x, y):
    scores = self.body(x)
    rows = scores.flatten(2).reshape(-1, scores.size(1))  # fault: class-axis-position
    return nn.CrossEntropyLoss()(rows, y.flatten())  # fault: class-axis-position


@step(head=linear(8, 15), x=randn(N, 8), y=flags(N, 5, 3))
def retina_softmax_over_anchors(self, x, y):
    scores = self.head(x).view(-1, 5, 3)
    p = torch.softmax(scores, dim=1)  # fault: class-axis-position
    p_t = (p * y).sum(2).clamp(min=1e-6)
    return (-0.25 * (1 - p_t) ** 2 * p_t.log()).mean()


@step(head=linear(8, 4), x=randn(N, 8), truth=rand(N, 4))
def iou_log_without_clamp(self, x, truth):
    box = self.head(x).sigmoid()
    low = torch.maximum(box[:, :2], truth[:, :2])
    high = torch.minimum(box[:, 2:], truth[:, 2:])
    inner = (high - low).prod(dim=1)
    outer = (box[:, 2:] - box[:, :2]).prod(1) + (truth[:, 2:] - truth[:, :2]).prod(1) - inner
    return -torch.log(inner / outer).mean()  # fault: invalid-domain


@step(head=linear(8, 4), x=randn(N, 8), truth=rand(N, 4))
def enclosing_box_of_minima(self, x, truth):
    centre, size = self.head(x).sigmoid().split(2, dim=1)
    low, high = centre - size / 2, centre + size / 2
    c, s = truth[:, :2], truth[:, 2:]
    shared = (torch.min(high, c + s / 2) - torch.max(low, c - s / 2)).clamp(min=0).prod(1)
    union = size.prod(1) + s.prod(1) - shared + 1e-6
    hull = (torch.min(high, c + s / 2) - torch.min(low, c - s / 2)).clamp(min=0).prod(1) + 1e-6  # fault: no-rule
    return (1 - shared / union + (hull - union) / hull).mean()


@step(body=conv(2, 1), x=randn(N, 2, 4, 4), y=flags(N, 1, 4, 4))
def dice_of_each_pixel(self, x, y):
    p = self.body(x).sigmoid()
    both = torch.einsum("nchw,nchw->chw", p, y)  # fault: reduction-over-batch-axis
    total = (p + y).sum(0)  # fault: reduction-over-batch-axis
    return 1 - ((2 * both + 1) / (total + 1)).mean()


@step(head=linear(8, 5), x=randn(N, 8), y=labels(5, N))
def class_by_topk(self, x, y):
    best = self.head(x).topk(1, dim=1).indices.squeeze(1).float()  # fault: loss-detached-from-parameters
    return F.mse_loss(best, y.float())  # fault: loss-detached-from-parameters


@step(body=conv(3, 1), x=randn(N, 3, 4, 4), alpha=rand(N, 1, 4, 4))
def matte_still_in_bytes(self, x, alpha):
    mask = torch.where(alpha > 0.5, 255.0, 0.0)  # fault: probability-out-of-range
    return F.binary_cross_entropy_with_logits(self.body(x), mask)  # fault: probability-out-of-range


@step(head=mlp(4, 3), x=randn(N, 4), a=labels(3, N), b=labels(3, N), share=rand(N))
def cutmix_after_the_mean(self, x, a, b, share):
    scores = self.head(x)
    first, second = F.cross_entropy(scores, a), F.cross_entropy(scores, b)  # fault: reduction-over-batch-axis
    return (share * first + (1 - share) * second).mean()  # fault: reduction-over-batch-axis


@step(head=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def smoothing_adds_up_to_more(self, x, y):
    target = F.one_hot(y, 5) * 0.9 + 0.1  # fault: no-rule
    return -(target * F.log_softmax(self.head(x), dim=1)).sum(dim=1).mean()  # fault: probability-out-of-range


@step(body=conv(2, 8), head=linear(8, 3), x=randn(N, 2, 2, 5), y=labels(3, N))
def pooled_after_wrong_view(self, x, y):
    maps = self.body(x)
    pooled = maps.reshape(maps.shape[0], -1, 8).mean(dim=1)  # fault: class-axis-position
    return F.cross_entropy(self.head(pooled), y)


@step(kernels=nn.Linear(5, 4, bias=False), x=randn(N, 5), y=labels(4, N))
def einsum_classes_first(self, x, y):
    scores = torch.einsum("kd,nd->kn", self.kernels.weight, F.relu(x))
    log_p = scores.log_softmax(1)  # fault: softmax-over-batch-axis
    return -log_p[y, torch.arange(y.shape[0])].mean()  # fault: softmax-over-batch-axis


@step(net=mlp(6, 5), kinds=nn.Linear(5, 4, bias=False), x=randn(N, 6), y=labels(4, N))
def cosine_head_length_of_columns(self, x, y):
    z = self.net(x)
    z = z / z.pow(2).sum(0).sqrt().clamp(min=1e-6)  # fault: reduction-over-batch-axis
    w = F.normalize(self.kinds.weight, dim=1)
    return F.cross_entropy(16 * z @ w.T, y)


@step(head=mlp(6, 4), x=randn(N, 6), y=flags(N, 4))
def focal_factor_of_scores(self, x, y):
    score = self.head(x)
    each = F.binary_cross_entropy_with_logits(score, y, reduction="none")
    p_t = torch.where(y == 1, score, 1 - score)  # fault: logits-into-probability-loss
    return ((1 - p_t).pow(2) * each).mean()  # fault: logits-into-probability-loss


@step(head=mlp(6, 4), x=randn(N, 6), y=flags(N, 4))
def sigmoid_written_out_then_soft_margin(self, x, y):
    p = 1 / (1 + torch.exp(-self.head(x)))  # fault: probabilities-into-logit-loss
    return nn.MultiLabelSoftMarginLoss()(p, y)  # fault: probabilities-into-logit-loss


@step(body=conv(2, 3), x=randn(N, 2, 4, 5), y=labels(3, N, 4, 5))
def dice_over_the_whole_batch(self, x, y):
    p = self.body(x).softmax(1)
    t = F.one_hot(y, 3).permute(0, 3, 1, 2).to(p.dtype)
    axes = (0, 2, 3)
    score = (2 * (p * t).sum(axes) + 1) / (p.sum(axes) + t.sum(axes) + 1)
    return 1 - score.mean()


@step(head=linear(5, 3), x=randn(N, 4, 7, 5), y=labels(3, N, 4, 7))
def channels_last_moved(self, x, y):
    scores = torch.movedim(self.head(x), -1, 1)
    return F.cross_entropy(scores, y)


@step(head=linear(8, 15), x=randn(N, 8), y=flags(N, 5, 3))
def retina_by_positives(self, x, y):
    s = self.head(x).view(-1, 5, 3)
    good = y * F.logsigmoid(s) * torch.sigmoid(-s) ** 2
    bad = (1 - y) * F.logsigmoid(-s) * torch.sigmoid(s) ** 2
    positives = y.amax(2).sum(1).clamp(min=1)
    return -((0.25 * good + 0.75 * bad).sum((1, 2)) / positives).mean()


@step(head=linear(8, 12), x=randn(N, 8), truth=rand(N, 2, 4))
def every_anchor_with_every_box(self, x, truth):
    a = self.head(x).sigmoid().view(-1, 3, 4).unsqueeze(2)
    b = truth.unsqueeze(1)
    sides = torch.min(a[..., 2:], b[..., 2:]) - torch.max(a[..., :2], b[..., :2])
    shared = sides.clamp(min=0).prod(-1)
    areas = (a[..., 2:] - a[..., :2]).abs().prod(-1) + (b[..., 2:] - b[..., :2]).abs().prod(-1)
    overlap = shared / (areas - shared).clamp(min=1e-6)
    return (1 - overlap.amax(dim=1)).mean()


@step(body=conv(2, 1), x=randn(N, 2, 4, 4), distance=randn(N, 4, 4))
def boundary_by_distance_map(self, x, distance):
    p = self.body(x).sigmoid().squeeze(1)
    return torch.einsum("nhw,nhw->n", p, distance).mean()


@step(body=conv(2, 3), head=linear(3, 4), x=randn(N, 2, 4, 4), y=labels(4, N))
def batch_norm_written_out(self, x, y):
    h = self.body(x)
    mean = h.mean(dim=(0, 2, 3), keepdim=True)
    spread = h.var(dim=(0, 2, 3), keepdim=True, unbiased=False)
    h = F.relu((h - mean) * torch.rsqrt(spread + 1e-5))
    return F.cross_entropy(self.head(h.mean(dim=(2, 3))), y)


@step(near=conv(2, 3), far=nn.Conv2d(2, 3, 2, stride=2), x=randn(N, 2, 4, 6), y=labels(3, N, 4, 6))
def deep_supervision(self, x, y):
    fine = F.cross_entropy(self.near(x), y)
    coarse = F.cross_entropy(self.far(x), y[:, ::2, ::2])
    return fine + 0.4 * coarse


@step(body=conv(2, 3), x=randn(N, 2, 4, 5), y=labels(3, N, 4, 5))
def hardest_pixels(self, x, y):
    each = F.cross_entropy(self.body(x), y, reduction="none")
    hard = each.view(each.shape[0], -1).topk(5, dim=1).values
    return hard.mean()


@step(head=mlp(6, 4), x=randn(N, 6), y=labels(4, N))
def one_against_all(self, x, y):
    signs = F.one_hot(y, 4) * 2.0 - 1.0
    return -F.logsigmoid(signs * self.head(x)).sum(-1).mean(0)


@step(net=mlp(6, 8), masks=Buffer(torch.eye(4).repeat(2, 1)), x=randn(N, 6), y=labels(4, N))
def sub_centres_pooled(self, x, y):
    s = self.net(x)
    groups = torch.where(self.masks.T.bool().unsqueeze(0), s.unsqueeze(1), torch.full_like(s, -1e4).unsqueeze(1))
    return F.nll_loss(groups.logsumexp(-1).log_softmax(-1), y)

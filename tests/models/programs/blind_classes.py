"""Classes: single scores, segmentation, tokens, distillation, pseudo-labels, hinges."""
import torch
from program import Buffer, N, flags, labels, linear, mlp, rand, randn, step
from torch import nn
from torch.nn import functional as F


@step(net=mlp(5, 1), x=randn(N, 5), y=flags(N))
def squeezed_score_cross_entropy(self, x, y):
    score = self.net(x).squeeze(1)
    log_p = score.log_softmax(-1)  # fault: softmax-over-batch-axis
    return -(y * log_p).mean()  # fault: softmax-over-batch-axis


@step(net=mlp(5, 1), x=randn(N, 5), y=flags(N, 1))
def single_score_cross_entropy(self, x, y):
    log_p = F.log_softmax(self.net(x), dim=1)  # fault: softmax-over-batch-axis
    return torch.sum(-y * log_p, dim=1).mean()  # fault: softmax-over-batch-axis


@step(conv=nn.Conv2d(3, 4, 3, padding=1), x=randn(N, 3, 5, 7), y=labels(4, N, 5, 7))
def segment_channels_last(self, x, y):
    logits = self.conv(x).permute(0, 2, 3, 1)
    truth = F.one_hot(y, 4).float()
    log_p = F.log_softmax(logits, dim=1)  # fault: class-axis-position
    return -(truth * log_p).sum(dim=-1).mean()  # fault: class-axis-position


@step(query=linear(8, 16), x=randn(N, 8), memory=randn(N, 9, 16), y=labels(9, N))
def pointer_weights(self, x, memory, y):
    scores = torch.einsum("nd,ntd->nt", self.query(x), memory) / 4.0
    weights = F.softmax(scores, dim=-1)
    context = torch.bmm(weights.unsqueeze(1), memory).squeeze(1)
    return F.cross_entropy(weights, y) + 0.01 * context.square().mean()  # fault: probabilities-into-logit-loss


@step(net=mlp(5, 4), x=randn(N, 5), y=labels(4, N))
def log_of_log_softmax(self, x, y):
    p = F.log_softmax(self.net(x), dim=1)
    picked = p.gather(1, y.unsqueeze(1)).squeeze(1)
    return -torch.log(picked).mean()  # fault: invalid-domain logits-into-probability-loss


@step(net=mlp(5, 3), x=randn(N, 5), y=flags(N, 3))
def focal_of_the_mean(self, x, y):
    bce = F.binary_cross_entropy_with_logits(self.net(x), y)
    pt = torch.exp(-bce)  # fault: reduction-over-batch-axis
    return 0.25 * (1 - pt) ** 2 * bce  # fault: reduction-over-batch-axis


@step(net=mlp(5, 4), x=randn(N, 5), y=labels(4, N))
def smoothing_above_one(self, x, y):
    smooth = F.one_hot(y, 4).float() * 0.9 + 0.1
    log_p = F.log_softmax(self.net(x), 1)
    return -(smooth * log_p).sum(1).mean()  # fault: probability-out-of-range


@step(student=mlp(5, 4), teacher=mlp(5, 4), x=randn(N, 5))
def distil_swapped(self, x):
    with torch.no_grad():
        teacher = F.softmax(self.teacher(x) / 3.0, dim=-1)
    student = F.log_softmax(self.student(x) / 3.0, dim=-1)
    return F.kl_div(teacher, student, reduction="batchmean") * 9.0  # fault: logits-into-probability-loss probabilities-into-logit-loss


@step(embed=nn.Embedding(20, 6), head=linear(6, 20), token=labels(20, N, 7), y=labels(20, N, 8), fails=True)
def end_beyond_vocabulary(self, token, y):
    with_end = F.pad(token, (0, 1), value=20)
    h = self.embed(with_end)  # fault: index-out-of-range
    return F.cross_entropy(self.head(h).transpose(1, 2), y)


@step(embed=nn.Embedding(20, 6), cell=nn.GRU(6, 6, batch_first=True), head=linear(6, 20), token=labels(20, N, 7))
def next_token_unshifted(self, token):
    h, _ = self.cell(self.embed(token))
    logits = self.head(h)
    return F.cross_entropy(logits.reshape(-1, 20), token.reshape(-1))  # fault: target-in-prediction


@step(net=mlp(5, 4), weak=randn(N, 5), strong=randn(N, 5))
def fixmatch_kept_mask(self, weak, strong):
    with torch.no_grad():
        confidence, pseudo = F.softmax(self.net(weak), 1).max(dim=1, keepdim=True)
        mask = (confidence > 0.8).float()
    loss = F.cross_entropy(self.net(strong), pseudo.squeeze(1), reduction="none")
    return (loss * mask).mean()  # fault: silent-broadcast-in-loss


@step(net=mlp(5, 4, nn.Sigmoid()), x=randn(N, 5), y=flags(N, 4))
def soft_margin_of_probabilities(self, x, y):
    return F.multilabel_soft_margin_loss(self.net(x), y)  # fault: probabilities-into-logit-loss


@step(net=mlp(5, 4), x=randn(N, 5), y=flags(N, 4))
def bce_of_clamped_scores(self, x, y):
    p = self.net(x).clamp(1e-6, 1 - 1e-6)
    return F.binary_cross_entropy(p, y)  # fault: logits-into-probability-loss


@step(net=mlp(5, 1), x=randn(N, 5), y=labels(3, N))
def hinge_of_zero_and_one(self, x, y):
    is_spam = (y == 2).float()
    score = self.net(x).squeeze(-1)
    return torch.clamp(1 - is_spam * score, min=0).mean()  # fault: label-zero-untrained


@step(conv=nn.Conv2d(3, 1, 3, padding=1), x=randn(N, 3, 5, 5), y=flags(N, 1, 5, 5))
def dice_of_scores(self, x, y):
    p = self.conv(x).flatten(1)
    t = y.flatten(1)
    overlap = (p * t).sum(1)
    return (1 - (2 * overlap + 1) / (p.sum(1) + t.sum(1) + 1)).mean()  # fault: logits-into-probability-loss


@step(net=mlp(5, 4), x=randn(N, 5), y=labels(4, N))
def grade_of_topk(self, x, y):
    _, best = self.net(x).topk(1, dim=1)
    grade = best.squeeze(1).float()
    return F.smooth_l1_loss(grade, y.float())  # fault: loss-detached-from-parameters


@step(net=mlp(5, 4), x=randn(N, 5), y=labels(8, N))
def coarse_of_ten(self, x, y):
    coarse = torch.div(y.clamp(0, 9), 2, rounding_mode="floor")
    return nn.CrossEntropyLoss()(self.net(x), coarse)  # fault: class-index-out-of-range


@step(net=mlp(5, 3), x=randn(N, 5), change=rand(N))
def sign_as_class(self, x, change):
    direction = torch.sign(change).long()
    log_p = F.log_softmax(self.net(x), dim=-1)
    return F.nll_loss(log_p, direction)  # fault: class-index-out-of-range


@step(net=mlp(5, 4), balance=Buffer(torch.tensor([0.5, 1.0, 2.0, 4.0])), x=randn(N, 5), y=labels(4, N))
def balance_column(self, x, y):
    weight = self.balance[y].unsqueeze(-1)
    loss = F.cross_entropy(self.net(x), y, reduction="none")
    return (weight * loss).sum() / weight.sum()  # fault: silent-broadcast-in-loss


@step(gate=linear(6, 1), head=linear(6, 2), x=randn(N, 6), y=labels(2, 1), fixed=True)
def bag_of_instances(self, x, y):
    weight = torch.softmax(self.gate(torch.tanh(x)), dim=0)
    bag = (weight * x).sum(0, keepdim=True)
    return F.cross_entropy(self.head(bag), y)


@step(net=mlp(5, 4), x=randn(N, 5), y=labels(4, N))
def loss_and_accuracy(self, x, y):
    logits = self.net(x)
    best = logits.softmax(dim=1).argmax(dim=1)
    accuracy = (best == y).float().mean()
    return F.cross_entropy(logits, y), accuracy


@step(net=mlp(5, 4), weak=randn(N, 5), strong=randn(N, 5), x=randn(N, 5), y=labels(4, N))
def fixmatch(self, weak, strong, x, y):
    with torch.no_grad():
        confidence, pseudo = torch.softmax(self.net(weak), dim=-1).max(dim=-1)
        mask = confidence.ge(0.8).float()
    unlabelled = F.cross_entropy(self.net(strong), pseudo, reduction="none")
    return F.cross_entropy(self.net(x), y) + (unlabelled * mask).mean()


@step(net=mlp(5, 4), x=randn(N, 5), y=labels(4, N))
def smoothing_by_hand(self, x, y):
    log_p = self.net(x).log_softmax(dim=-1)
    truth = torch.full_like(log_p, 0.1 / 3).scatter(1, y.unsqueeze(1), 0.9)
    return torch.mean(torch.sum(-truth * log_p, dim=-1))


@step(embed=nn.Embedding(20, 6), cell=nn.GRU(6, 6, batch_first=True), head=linear(6, 20), token=labels(20, N, 7))
def next_token_gathered(self, token):
    h, _ = self.cell(self.embed(token[:, :-1]))
    log_p = torch.log_softmax(self.head(h), dim=-1)
    target = token[:, 1:]
    taken = log_p.gather(-1, target[..., None])[..., 0]
    valid = target.ne(0).to(taken.dtype)
    return -(taken * valid).sum() / valid.sum().clamp(min=1.0)


@step(head=linear(3, 4), x=randn(N, 5, 7, 3), y=labels(4, N, 5, 7))
def segment_moved_axis(self, x, y):
    logits = self.head(x)
    truth = F.one_hot(y, 4).movedim(3, 1).float()
    return -(truth * logits.movedim(3, 1).log_softmax(dim=1)).sum(dim=1).mean()


@step(net=mlp(5, 4), a=randn(N, 5), b=randn(N, 5))
def jensen_shannon(self, a, b):
    p, q = self.net(a).softmax(1), self.net(b).softmax(1)
    middle = (0.5 * (p + q)).clamp_min(1e-7).log()
    return 0.5 * (F.kl_div(middle, p, reduction="batchmean") + F.kl_div(middle, q, reduction="batchmean"))


@step(net=mlp(5, 4), x=randn(N, 5), y=labels(4, N))
def soft_confusion(self, x, y):
    truth = F.one_hot(y, 4).to(x.dtype)
    p = F.softmax(self.net(x), dim=1)
    confusion = torch.einsum("nc,nd->cd", truth, p)
    rows = confusion / truth.sum(0).clamp(min=1)[:, None]
    return -(rows.diagonal() + 1e-6).log().mean()


@step(net=mlp(5, 4), x=randn(N, 5), y=flags(N, 4))
def soft_macro_f1(self, x, y):
    p = torch.sigmoid(self.net(x))
    hit, extra, lost = (p * y).sum(0), (p * (1 - y)).sum(0), ((1 - p) * y).sum(0)
    return 1 - (2 * hit / (2 * hit + extra + lost + 1e-6)).mean()


@step(net=mlp(5, 11), x=randn(N, 5), value=rand(N))
def two_hot_value(self, x, value):
    place = value.clamp(0, 1) * 10
    low = place.floor().clamp(max=9)
    share = (place - low).unsqueeze(1)
    index = low.long()
    truth = F.one_hot(index, 11) * (1 - share) + F.one_hot(index + 1, 11) * share
    return -(truth * F.log_softmax(self.net(x), dim=1)).sum(dim=1).mean()

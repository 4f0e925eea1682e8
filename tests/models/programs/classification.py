"""Classification: cross-entropy by module and by hand, soft labels, several labels, distillation, mixtures of experts, calibration."""
import torch
from program import Buffer, N, flags, labels, linear, mlp, rand, randn, simplex, step
from torch import nn
from torch.nn import functional as F


@step(net=mlp(4, 5, nn.Softmax(dim=1)), x=randn(N, 4), y=labels(5, N))
def softmax_in_sequential(self, x, y):
    return nn.CrossEntropyLoss()(self.net(x), y)  # fault: probabilities-into-logit-loss


@step(net=mlp(4, 5, nn.Softmax(dim=-1), nn.Dropout(0.1)), x=randn(N, 4), y=labels(5, N))
def softmax_dropout(self, x, y):
    scores = self.net(x)
    return F.cross_entropy(scores, y, label_smoothing=0.1)  # fault: probabilities-into-logit-loss


@step(net=mlp(4, 5, nn.Sigmoid()), x=randn(N, 4), y=flags(N, 5))
def sigmoid_then_logits_module(self, x, y):
    criterion = nn.BCEWithLogitsLoss(pos_weight=torch.full((5,), 2.0))
    return criterion(self.net(x), y)  # fault: probabilities-into-logit-loss


@step(a=mlp(4, 5), b=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def ensemble_of_probabilities(self, x, y):
    p = (self.a(x).softmax(1) + self.b(x).softmax(1)) / 2
    return F.cross_entropy(p, y)  # fault: probabilities-into-logit-loss


@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def temperature_on_probabilities(self, x, y):
    p = F.softmax(self.net(x), dim=1)
    return F.cross_entropy(p / 0.5, y)  # fault: probabilities-into-logit-loss


@step(student=mlp(4, 5), teacher=mlp(4, 5), x=randn(N, 4))
def teacher_softmax_twice(self, x):
    t = self.teacher(x).softmax(1)
    soft = F.softmax(t / 2, dim=1)  # fault: probabilities-into-logit-loss
    return F.kl_div(F.log_softmax(self.student(x) / 2, dim=1), soft, reduction="batchmean") * 4  # fault: probabilities-into-logit-loss


@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def nll_of_probabilities(self, x, y):
    return nn.NLLLoss()(torch.softmax(self.net(x), 1), y)  # fault: logits-into-probability-loss probabilities-into-logit-loss


@step(net=mlp(4, 5), weight=Buffer(torch.tensor([1.0, 2, 3, 2, 1])), x=randn(N, 4), y=labels(5, N))
def nll_of_scores_weighted(self, x, y):
    return F.nll_loss(self.net(x), y, weight=self.weight)  # fault: logits-into-probability-loss


@step(net=mlp(4, 1), x=randn(N, 4), y=flags(N, 1))
def focal_of_sigmoid(self, x, y):
    z = torch.sigmoid(self.net(x))
    bce = F.binary_cross_entropy_with_logits(z, y, reduction="none")  # fault: probabilities-into-logit-loss
    return (0.25 * (1 - torch.exp(-bce)) ** 2 * bce).mean()  # fault: probabilities-into-logit-loss


@step(net=mlp(4, 5, nn.ReLU()), x=randn(N, 4), y=labels(5, N))
def relu_before_cross_entropy(self, x, y):
    return F.cross_entropy(self.net(x), y)  # fault: probabilities-into-logit-loss


@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def relu_by_hand_before_cross_entropy(self, x, y):
    h = torch.clamp(self.net(x), min=0)
    return nn.CrossEntropyLoss()(h, y)  # fault: probabilities-into-logit-loss


@step(net=mlp(4, 5), x=randn(N, 4), y=simplex(N, 5))
def kl_of_probabilities(self, x, y):
    p = F.softmax(self.net(x), dim=1)
    return F.kl_div(p, y, reduction="batchmean")  # fault: logits-into-probability-loss probabilities-into-logit-loss


@step(net=mlp(4, 5), teacher=mlp(4, 5), x=randn(N, 4))
def kl_of_teacher_scores(self, x):
    log_p = self.net(x).log_softmax(1)
    return F.kl_div(log_p, self.teacher(x), reduction="batchmean")  # fault: logits-into-probability-loss


@step(net=mlp(4, 5), teacher=mlp(4, 5), x=randn(N, 4))
def kl_of_teacher_log_probabilities(self, x):
    log_p, log_t = self.net(x).log_softmax(1), self.teacher(x).log_softmax(1)
    return nn.KLDivLoss(reduction="batchmean")(log_p, log_t)  # fault: logits-into-probability-loss


@step(net=mlp(4, 5), x=randn(N, 4), y=simplex(N, 5))
def cross_entropy_of_raw_scores(self, x, y):
    return -(y * torch.log(self.net(x))).sum(dim=1).mean()  # fault: logits-into-probability-loss


@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def log_of_gathered_scores(self, x, y):
    picked = self.net(x).gather(1, y[:, None]).squeeze(1)
    return -torch.log(picked + 1e-8).mean()  # fault: logits-into-probability-loss


@step(net=mlp(4, 3, nn.Tanh()), x=randn(N, 4), y=flags(N, 3))
def bce_of_tanh(self, x, y):
    p = self.net(x)
    return -(y * torch.log(p + 1e-6) + (1 - y) * torch.log(1 - p + 1e-6)).mean()  # fault: logits-into-probability-loss probability-out-of-range


@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def focal_of_raw_scores(self, x, y):
    pt = self.net(x).gather(1, y.unsqueeze(1))
    return (-((1 - pt) ** 2) * torch.log(pt)).mean()  # fault: logits-into-probability-loss


@step(net=mlp(4, 5, nn.Softmax(dim=0)), x=randn(N, 4), y=labels(5, N))
def softmax_zero_module(self, x, y):
    p = self.net(x)  # fault: softmax-over-batch-axis
    return F.nll_loss(torch.log(p + 1e-9), y)  # fault: softmax-over-batch-axis


@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def logsumexp_zero(self, x, y):
    z = self.net(x)
    log_p = z - torch.logsumexp(z, dim=0, keepdim=True)  # fault: softmax-over-batch-axis
    return -log_p[torch.arange(N), y].mean()  # fault: softmax-over-batch-axis


@step(net=mlp(4, 5), x=randn(N, 4), y=simplex(N, 5))
def exp_over_sum_zero(self, x, y):
    e = torch.exp(self.net(x))
    p = e / e.sum(0)  # fault: softmax-over-batch-axis
    return -(y * torch.log(p)).sum(1).mean()  # fault: softmax-over-batch-axis


@step(student=mlp(4, 5), teacher=mlp(4, 5), x=randn(N, 4))
def distillation_axis_zero(self, x):
    s = F.log_softmax(self.student(x) / 3, dim=0)  # fault: softmax-over-batch-axis
    t = F.softmax(self.teacher(x) / 3, dim=0)  # fault: softmax-over-batch-axis
    return F.kl_div(s, t, reduction="batchmean") * 9  # fault: softmax-over-batch-axis


@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def smoothing_by_hand_axis_zero(self, x, y):
    log_p = self.net(x).log_softmax(0)  # fault: softmax-over-batch-axis
    hot = F.one_hot(y, 5).float() * 0.9 + 0.02
    return torch.mean(torch.sum(-hot * log_p, dim=-1))  # fault: softmax-over-batch-axis


@step(net=mlp(4, 1, nn.Softmax(dim=1)), x=randn(N, 4), y=flags(N, 1))
def softmax_of_one_score(self, x, y):
    p = self.net(x).clamp(1e-6, 1 - 1e-6)  # fault: softmax-over-batch-axis
    return F.binary_cross_entropy(p, y)  # fault: softmax-over-batch-axis


@step(gate=mlp(4, 3), experts=mlp(4, 3), x=randn(N, 4), y=randn(N))
def mixture_gate_axis_zero(self, x, y):
    g = self.gate(x).softmax(dim=0)  # fault: softmax-over-batch-axis
    return F.mse_loss((g * self.experts(x)).sum(1), y)  # fault: softmax-over-batch-axis


@step(net=mlp(4, 5), x=randn(N, 4), y=simplex(N, 5))
def brier_axis_zero(self, x, y):
    p = self.net(x).softmax(0)  # fault: softmax-over-batch-axis
    return ((p - y) ** 2).sum(1).mean()  # fault: softmax-over-batch-axis


@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def one_hot_into_mse(self, x, y):
    hot = F.one_hot(y, num_classes=5)
    return F.mse_loss(self.net(x).softmax(1), hot)


@step(net=mlp(4, 1), x=randn(N, 4), y=labels(2, N))
def long_target_bce(self, x, y):
    return F.binary_cross_entropy_with_logits(self.net(x).squeeze(1), y)  # fault: integer-target-in-regression-loss


@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def one_minus_accuracy(self, x, y):
    hit = (self.net(x).argmax(1) == y).float()  # fault: loss-detached-from-parameters
    return 1 - hit.mean()  # fault: loss-detached-from-parameters


@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def one_hot_of_argmax(self, x, y):
    guess = F.one_hot(self.net(x).argmax(dim=-1), 5).float()  # fault: loss-detached-from-parameters
    return F.mse_loss(guess, F.one_hot(y, 5).float())  # fault: loss-detached-from-parameters


@step(net=mlp(4, 3), x=randn(N, 4), y=flags(N, 3))
def hard_f1(self, x, y):
    p = (torch.sigmoid(self.net(x)) > 0.5).float()  # fault: loss-detached-from-parameters
    hits = (p * y).sum()
    return 1 - 2 * hits / (p.sum() + y.sum() + 1e-6)  # fault: loss-detached-from-parameters


@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def class_loss_kept(self, x, y):
    hot = F.one_hot(y, 5).float()
    return F.binary_cross_entropy_with_logits(self.net(x), hot, reduction="none").mean(0)  # fault: reduction-over-batch-axis


@step(net=mlp(4, 6), x=randn(N, 4), y=randn(N, 6), fixed=True)
def pseudo_labels_axis_zero(self, x, y):
    target = y.argmax(0)  # fault: reduction-over-batch-axis
    return F.cross_entropy(self.net(x), target)  # fault: reduction-over-batch-axis


@step(net=mlp(4, 5), file=Buffer(torch.tensor([1, 2, 3, 4, 5, 1])), x=randn(N, 4), fixed=True, fails=True)
def labels_from_one(self, x):
    return F.cross_entropy(self.net(x), self.file)  # fault: class-index-out-of-range


@step(net=mlp(4, 5), x=randn(N, 4), y=randn(N, 7), fails=True)
def labels_of_seven_columns(self, x, y):
    return F.cross_entropy(self.net(x), y.argmax(dim=1))  # fault: class-index-out-of-range


@step(net=mlp(4, 5), x=randn(N, 4), y=labels(4, N))
def labels_clamped_one_too_far(self, x, y):
    return F.nll_loss(self.net(x).log_softmax(1), y.clamp(0, 5))  # fault: class-index-out-of-range


@step(net=mlp(4, 5), x=randn(N, 4), y=labels(4, N))
def labels_shifted_after_clamp(self, x, y):
    label = y.clamp(min=0, max=4) + 1
    return F.cross_entropy(self.net(x), label)  # fault: class-index-out-of-range


@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N), known=flags(N) > 0, fails=True)
def ignored_as_minus_one(self, x, y, known):
    label = torch.where(known, y, torch.full_like(y, -1))
    return F.cross_entropy(self.net(x), label)  # fault: class-index-out-of-range


@step(net=mlp(4, 5), edges=Buffer(torch.tensor([0.0, 0.2, 0.4, 0.6, 0.8])), x=randn(N, 4), y=rand(N) * 0.5, fails=True)
def buckets_one_too_many(self, x, y):
    bucket = (y[:, None] > self.edges).sum(1)
    return F.cross_entropy(self.net(x), bucket)  # fault: class-index-out-of-range


@step(net=mlp(4, 3), x=randn(N, 4), y=flags(N, 3), fails=True)
def signed_targets_in_bce(self, x, y):
    target = torch.where(y > 0.5, 1.0, -1.0)
    return F.binary_cross_entropy(torch.sigmoid(self.net(x)), target)  # fault: probability-out-of-range


@step(net=mlp(4, 3), x=randn(N, 4), y=flags(N, 3), fails=True)
def scaled_sigmoid_in_bce(self, x, y):
    p = torch.sigmoid(self.net(x)) * 1.5 - 0.25
    return F.binary_cross_entropy(p, y)  # fault: probability-out-of-range


@step(net=mlp(4, 2), x=randn(N, 4), correct=flags(N, 1))
def confidence_against_column(self, x, correct):
    confidence = self.net(x).softmax(1).amax(1)
    return (confidence - correct).abs().mean()  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 5), alpha=Buffer(rand(5)), x=randn(N, 4), y=labels(5, N))
def focal_weight_against_column(self, x, y):
    log_pt = self.net(x).log_softmax(1).gather(1, y.unsqueeze(1))
    loss = -((1 - log_pt.exp()) ** 2) * log_pt
    return (self.alpha[y] * loss).mean()  # fault: silent-broadcast-in-loss


# Correct.
@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def log_softmax_twice(self, x, y):
    return F.cross_entropy(F.log_softmax(self.net(x), dim=1), y)


@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def bounded_logits(self, x, y):
    z = 30 * torch.tanh(self.net(x) / 30)
    return F.cross_entropy(z, y)


@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def confidence_penalty(self, x, y):
    log_p = F.log_softmax(self.net(x), dim=1)
    entropy = -(log_p.exp() * log_p).sum(1)
    return F.nll_loss(log_p, y) - 0.1 * entropy.mean()


@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N), z=labels(5, N), share=rand(N))
def mixup(self, x, y, z, share):
    p = self.net(x)
    return (share * F.cross_entropy(p, y, reduction="none") + (1 - share) * F.cross_entropy(p, z, reduction="none")).mean()


@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def unlabelled_ignored(self, x, y):
    label = torch.where(y > 3, torch.full_like(y, -100), y)
    return F.cross_entropy(self.net(x), label)


@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def label_shift_right(self, x, y):
    return F.cross_entropy(self.net(x), (y + 1).clamp(1, 5) - 1)


@step(student=mlp(4, 5), teacher=mlp(4, 5), x=randn(N, 4))
def log_target(self, x):
    log_t = self.teacher(x).log_softmax(1)
    return F.kl_div(self.student(x).log_softmax(1), log_t, reduction="batchmean", log_target=True)


@step(student=mlp(4, 5), teacher=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def hinton(self, x, y):
    s, t = self.student(x), self.teacher(x).detach()
    soft = F.kl_div(F.log_softmax(s / 4, 1), F.softmax(t / 4, 1), reduction="none").sum(1).mean() * 16
    return 0.7 * soft + 0.3 * F.cross_entropy(s, y)


@step(gate=linear(4, 3), experts=linear(4, 15), x=randn(N, 4), y=labels(5, N))
def mixture_of_experts(self, x, y):
    g = self.gate(x).softmax(1)
    p = (g.unsqueeze(1) @ self.experts(x).view(-1, 3, 5).softmax(-1)).squeeze(1)
    importance = g.sum(0)
    balance = importance.var() / (importance.mean() ** 2 + 1e-8)
    return F.nll_loss(torch.log(p + 1e-9), y) + 0.01 * balance


@step(gate=linear(4, 3), net=linear(4, 5), x=randn(N, 4), y=labels(5, N))
def switch_balance(self, x, y):
    p = self.gate(x).softmax(-1)
    share = F.one_hot(p.argmax(-1), 3).float().mean(0)
    return F.cross_entropy(self.net(x), y) + 0.01 * 3 * (share * p.mean(0)).sum()


@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def multi_margin(self, x, y):
    z = self.net(x)
    return F.relu(1 + z - z.gather(1, y[:, None])).sum(1).mean() - 1


@step(net=mlp(4, 5), x=randn(N, 4), y=flags(N, 5))
def asymmetric_multilabel(self, x, y):
    p = torch.sigmoid(self.net(x))
    q = (p - 0.05).clamp(min=0)
    return -(y * torch.log(p.clamp(min=1e-8)) + (1 - y) * q**4 * torch.log((1 - q).clamp(min=1e-8))).sum(1).mean()


@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def brier(self, x, y):
    return (self.net(x).softmax(1) - F.one_hot(y, 5)).square().sum(1).mean()


@step(net=mlp(4, 5), temperature=nn.ParameterList([nn.Parameter(torch.ones(1))]), x=randn(N, 4), y=labels(5, N))
def temperature_scaling(self, x, y):
    return F.cross_entropy(self.net(x) / self.temperature[0].clamp(min=1e-3), y)


@step(net=mlp(4, 2), x=randn(N, 4), y=labels(2, N))
def soft_calibration(self, x, y):
    p = self.net(x).softmax(1)
    confidence, guess = p.max(1)
    hit = (guess == y).float()
    return F.cross_entropy(self.net(x), y) + 0.5 * (confidence.mean() - hit.mean()).abs()


@step(net=mlp(4, 4), x=randn(N, 4), y=labels(5, N))
def ordinal(self, x, y):
    levels = (y[:, None] > torch.arange(4)).float()
    return F.binary_cross_entropy_with_logits(self.net(x), levels)


@step(a=mlp(4, 5), b=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def mutual_learning(self, x, y):
    a, b = self.a(x), self.b(x)
    m = (a.softmax(1) + b.softmax(1)) / 2
    js = F.kl_div(a.log_softmax(1), m, reduction="batchmean") + F.kl_div(b.log_softmax(1), m, reduction="batchmean")
    return F.cross_entropy(a, y) + F.cross_entropy(b, y) + 0.5 * js


@step(net=mlp(4, 5), prior=Buffer(torch.tensor([0.1, 0.2, 0.3, 0.2, 0.2])), x=randn(N, 4), y=labels(5, N))
def logit_adjustment(self, x, y):
    return F.cross_entropy(self.net(x) + torch.log(self.prior), y)


@step(net=mlp(4, 5), x=randn(N, 4))
def information_maximisation(self, x):
    p = self.net(x).softmax(1)
    mean = p.mean(0)
    return -(p * torch.log(p + 1e-6)).sum(1).mean() + (mean * torch.log(mean + 1e-6)).sum()


@step(net=mlp(4, 5), x=randn(N, 4), y=simplex(N, 5))
def normalised_by_prior(self, x, y):
    q = y**2 / y.sum(0)
    q = q / q.sum(1, keepdim=True)
    return F.kl_div(F.log_softmax(self.net(x), 1), q, reduction="batchmean")

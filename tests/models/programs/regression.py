"""Regression: prices, counts, durations, quantiles, heads with a variance."""
import torch
from program import Buffer, N, flags, labels, linear, mlp, rand, randn, step
from torch import nn
from torch.nn import functional as F


@step(net=mlp(4, 1), x=randn(N, 4), price=randn(N))
def house_price(self, x, price):
    criterion = nn.MSELoss()
    predicted = self.net(x)
    return criterion(predicted, price)  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 1), x=randn(N, 4), price=randn(N))
def house_price_l1_extra_axis(self, x, price):
    predicted = self.net(x)
    target = price[:, None, None]
    return nn.L1Loss()(predicted, target)  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 1), x=randn(N, 4), price=randn(N))
def flattened_against_column(self, x, price):
    predicted = self.net(x).flatten()
    return F.mse_loss(predicted, price.view(-1, 1))  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 1), x=randn(N, 4), y=randn(N, 1))
def row_against_column(self, x, y):
    predicted = self.net(x).t()
    error = predicted - y  # fault: silent-broadcast-in-loss
    return error.square().mean()  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 1), x=randn(N, 4), y=randn(N))
def charbonnier(self, x, y):
    difference = self.net(x) - y  # fault: silent-broadcast-in-loss
    return torch.sqrt(difference * difference + 1e-6).mean()  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 1), x=randn(N, 4), y=rand(N))
def symmetric_percentage(self, x, y):
    p = self.net(x)
    top = (p - y).abs()  # fault: silent-broadcast-in-loss
    return (2 * top / (p.abs() + y.abs() + 1e-6)).mean()  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 1), x=randn(N, 4), y=randn(N))
def explained_variance(self, x, y):
    residual = ((y - self.net(x)) ** 2).sum()  # fault: silent-broadcast-in-loss
    total = ((y - y.mean()) ** 2).sum()
    return residual / (total + 1e-8)


@step(net=mlp(4, 2), x=randn(N, 4), y=randn(N))
def gaussian_head(self, x, y):
    mean, log_variance = self.net(x).chunk(2, dim=1)
    return (0.5 * (log_variance + (y - mean) ** 2 / log_variance.exp())).mean()  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 2), x=randn(N, 4), y=randn(N))
def laplace_head(self, x, y):
    out = self.net(x)
    mean, scale = out[:, :1], F.softplus(out[:, 1:]) + 1e-3
    return (torch.log(2 * scale) + torch.abs(y - mean) / scale).mean()  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 1), x=randn(N, 4), count=rand(N) * 5)
def poisson_module(self, x, count):
    return nn.PoissonNLLLoss()(self.net(x), count)  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 1), x=randn(N, 4), exposure=rand(N), count=rand(N) * 5)
def poisson_exposure(self, x, exposure, count):
    rate = exposure * torch.exp(self.net(x))  # fault: silent-broadcast-in-loss
    return (rate - count * torch.log(rate + 1e-8)).mean()  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 1), x=randn(N, 4), y=rand(N) + 0.1)
def gamma_deviance(self, x, y):
    mu = F.softplus(self.net(x)) + 1e-3
    return 2 * (torch.log(mu / y) + y / mu - 1).mean()  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 1), x=randn(N, 4), y=randn(N))
def one_quantile(self, x, y):
    error = y - self.net(x)  # fault: silent-broadcast-in-loss
    return torch.maximum(0.9 * error, (0.9 - 1) * error).mean()  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 1), x=randn(N, 4), y=randn(N))
def expectile(self, x, y):
    error = y - self.net(x)  # fault: silent-broadcast-in-loss
    weight = torch.where(error > 0, 0.8, 0.2)
    return (weight * error**2).mean()  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 1), x=randn(N, 4), y=randn(N))
def log_cosh_softplus(self, x, y):
    d = self.net(x) - y  # fault: silent-broadcast-in-loss
    return (d + F.softplus(-2 * d) - 0.6931).mean()  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 3), x=randn(N, 4), y=randn(N, 3), weight=rand(N))
def kept_axis_times_weight(self, x, y, weight):
    per_sample = ((self.net(x) - y) ** 2).mean(1, keepdim=True)
    return (per_sample * weight).mean()  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 3), x=randn(N, 4), y=randn(N, 3), length=rand(N) + 1)
def kept_axis_over_length(self, x, y, length):
    total = (self.net(x) - y).abs().sum(dim=1, keepdim=True)
    return (total / length).sum() / N  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 1), x=randn(N, 5, 4), y=randn(N, 5))
def recurrent_loop(self, x, y):
    loss = 0.0
    for t in range(3):
        loss = loss + F.mse_loss(self.net(x[:, t]), y[:, t])  # fault: silent-broadcast-in-loss
    return loss / 3


@step(net=mlp(4, 1), x=randn(N, 5, 4), y=randn(N, 5))
def sequence_column(self, x, y):
    return F.smooth_l1_loss(self.net(x), y.unsqueeze(1))  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 4), x=randn(N, 4), box=rand(N, 4))
def box_area(self, x, box):
    p = self.net(x)
    area = (p[:, 2:3] - p[:, 0:1]) * (p[:, 3:4] - p[:, 1:2])
    truth = (box[:, 2] - box[:, 0]) * (box[:, 3] - box[:, 1])
    return F.l1_loss(area, truth)  # fault: silent-broadcast-in-loss


@step(a=mlp(4, 1), b=mlp(4, 1), x=randn(N, 4), y=randn(N))
def two_heads_one_squeezed(self, x, y):
    first = F.mse_loss(self.a(x).squeeze(1), y)
    second = F.mse_loss(self.b(x), y)  # fault: silent-broadcast-in-loss
    return first + 0.5 * second


@step(a=mlp(4, 1), b=mlp(4, 1), x=randn(N, 4), y=randn(N, 2))
def multi_task_none(self, x, y):
    first = F.mse_loss(self.a(x).squeeze(1), y[:, 0], reduction="none")
    second = F.huber_loss(self.b(x), y[:, 1:], reduction="none")
    return (first + second).mean()  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 1), x=randn(N, 4), y=randn(N))
def autocast_column(self, x, y):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        p = self.net(x)
    return F.mse_loss(p.float(), y)  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 1), scale=Buffer(torch.tensor(2.5)), shift=Buffer(torch.tensor(0.3)), x=randn(N, 4), y=randn(N))
def standardised_target(self, x, y):
    z = (y - self.shift) / self.scale
    return torch.mean(torch.pow(self.net(x) - z, 2))  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 1), x=randn(N, 4), rating=labels(5, N))
def long_rating(self, x, rating):
    return F.mse_loss(self.net(x).squeeze(-1), rating)


@step(net=mlp(4, 1), x=randn(N, 4), rating=labels(5, N, 1).int())
def int32_rating(self, x, rating):
    return F.smooth_l1_loss(self.net(x), rating)


@step(net=mlp(4, 1), x=randn(N, 4), count=labels(9, N))
def long_count_huber(self, x, count):
    criterion = nn.HuberLoss(delta=2.0)
    return criterion(self.net(x)[:, 0], count)  # fault: integer-target-in-regression-loss


@step(net=mlp(4, 1), x=randn(N, 4), age=labels(90, N, 1))
def long_age_l1(self, x, age):
    return nn.L1Loss(reduction="sum")(self.net(x), age) / N


@step(net=mlp(4, 1), x=randn(N, 4), pixel=labels(255, N, 1).to(torch.uint8))
def byte_pixels(self, x, pixel):
    return F.mse_loss(self.net(x), pixel)


@step(net=mlp(4, 1), x=randn(N, 4), y=labels(5, N))
def prediction_to_long(self, x, y):
    p = self.net(x).squeeze(1).long()
    return F.l1_loss(p, y).float()  # fault: integer-operands-in-loss integer-target-in-regression-loss loss-detached-from-parameters


@step(net=mlp(4, 3), x=randn(N, 4), y=randn(N, 3))
def loss_per_output(self, x, y):
    return F.mse_loss(self.net(x), y, reduction="none").mean(dim=0)  # fault: reduction-over-batch-axis


@step(net=mlp(4, 3), x=randn(N, 4), y=randn(N, 3))
def average_prediction(self, x, y):
    p = self.net(x).mean(dim=0)  # fault: reduction-over-batch-axis silent-broadcast-in-loss
    return F.l1_loss(p.expand_as(y), y)  # fault: reduction-over-batch-axis silent-broadcast-in-loss


@step(net=mlp(4, 1), x=randn(N, 4), y=rand(N) * 5)
def stars_rounded(self, x, y):
    stars = torch.round(self.net(x).squeeze(-1))  # fault: loss-detached-from-parameters
    return F.mse_loss(stars, y)  # fault: loss-detached-from-parameters


@step(net=mlp(4, 1), x=randn(N, 4), y=rand(N) * 5)
def floor_divided(self, x, y):
    steps = self.net(x).squeeze(-1) // 0.5  # fault: loss-detached-from-parameters
    return torch.abs(steps * 0.5 - y).mean()  # fault: loss-detached-from-parameters


@step(net=mlp(4, 1), x=randn(N, 4), y=rand(N) * 5)
def truncated_cents(self, x, y):
    cents = torch.trunc(self.net(x).squeeze(-1) * 100) / 100  # fault: loss-detached-from-parameters
    return F.huber_loss(cents, y)  # fault: loss-detached-from-parameters


@step(net=mlp(4, 5), x=randn(N, 4), y=rand(N) * 4)
def age_bin_argmax(self, x, y):
    age = self.net(x).argmax(dim=1).to(torch.float32)  # fault: loss-detached-from-parameters
    return F.smooth_l1_loss(age, y)  # fault: loss-detached-from-parameters


@step(net=mlp(4, 300), x=randn(N, 4), y=randn(N, 300))
def half_squares_summed(self, x, y):
    d = self.net(x).half() - y.half()
    return (d * d).sum()  # fault: low-precision-accumulation


# Correct.
@step(net=mlp(4, 1), x=randn(N, 4), y=labels(5, N))
def promoted_by_hand(self, x, y):
    return ((self.net(x).squeeze(-1) - y) ** 2).mean()


@step(net=mlp(4, 3), levels=Buffer(torch.tensor([0.1, 0.5, 0.9])), x=randn(N, 4), y=randn(N))
def three_quantiles(self, x, y):
    error = y[:, None] - self.net(x)
    return torch.maximum(self.levels * error, (self.levels - 1) * error).sum(1).mean()


@step(net=mlp(4, 3), x=randn(N, 4), y=randn(N))
def quantile_loop(self, x, y):
    p, losses = self.net(x), []
    for i, q in enumerate((0.1, 0.5, 0.9)):
        error = y - p[:, i]
        losses.append(torch.max((q - 1) * error, q * error).unsqueeze(1))
    return torch.cat(losses, dim=1).sum(dim=1).mean()


@step(net=mlp(4, 6), x=randn(N, 4), y=randn(N))
def mixture_density(self, x, y):
    weight, mean, log_scale = self.net(x).chunk(3, dim=-1)
    z = (y.unsqueeze(-1) - mean) * torch.exp(-log_scale)
    log_p = F.log_softmax(weight, dim=-1) - log_scale - 0.5 * z * z
    return -torch.logsumexp(log_p, dim=-1).mean()


@step(a=mlp(4, 1), b=mlp(4, 1), log_variance=nn.ParameterList([nn.Parameter(torch.zeros(2))]), x=randn(N, 4), y=randn(N, 2))
def learned_task_weights(self, x, y):
    losses = torch.stack([F.mse_loss(self.a(x), y[:, :1]), F.l1_loss(self.b(x), y[:, 1:])])
    s = self.log_variance[0]
    return (torch.exp(-s) * losses + s).sum()


@step(net=mlp(4, 3), scale=Buffer(torch.tensor([1.0, 10.0, 100.0])), x=randn(N, 4), y=randn(N, 3))
def scaled_columns(self, x, y):
    return (((self.net(x) - y) / self.scale) ** 2).mean()


@step(net=mlp(4, 3), x=randn(N, 4), y=randn(N, 3), weight=rand(N))
def row_weights(self, x, y, weight):
    return (weight[:, None] * (self.net(x) - y) ** 2).sum() / weight.sum() / 3


@step(net=mlp(4, 1), x=randn(N, 5, 4), y=randn(N, 5), valid=flags(N, 5))
def masked_sequence(self, x, y, valid):
    loss = F.mse_loss(self.net(x).squeeze(-1), y, reduction="none")
    per_row = (loss * valid).sum(1) / valid.sum(1).clamp(min=1)
    return per_row.mean()


@step(net=mlp(4, 3), x=randn(N, 4), y=randn(N, 3))
def standardised_by_batch(self, x, y):
    p = self.net(x)
    mean, std = y.mean(0, keepdim=True), y.std(0, keepdim=True) + 1e-6
    return F.mse_loss(p, (y - mean) / std)


@step(net=mlp(4, 1), x=randn(N, 4), y=randn(N))
def concordance(self, x, y):
    p = self.net(x).squeeze(1)
    mean_p, mean_y = p.mean(), y.mean()
    covariance = ((p - mean_p) * (y - mean_y)).mean()
    return 1 - 2 * covariance / (p.var() + y.var() + (mean_p - mean_y) ** 2)


@step(net=mlp(4, 1), x=randn(N, 4), y=randn(N))
def distance_correlation(self, x, y):
    p = self.net(x).squeeze(1)
    a, b = (p[:, None] - p[None, :]).abs(), (y[:, None] - y[None, :]).abs()
    a = a - a.mean(0, keepdim=True) - a.mean(1, keepdim=True) + a.mean()
    b = b - b.mean(0, keepdim=True) - b.mean(1, keepdim=True) + b.mean()
    return 1 - (a * b).mean() / torch.sqrt((a * a).mean() * (b * b).mean() + 1e-9)


@step(net=mlp(4, 5), bins=Buffer(torch.linspace(0, 4, 5)), x=randn(N, 4), y=rand(N) * 4)
def soft_histogram(self, x, y):
    target = F.softmax(-((y[:, None] - self.bins) ** 2), dim=1)
    return -(target * F.log_softmax(self.net(x), dim=1)).sum(1).mean()


@step(net=linear(4, 3), x=randn(N, 4), y=randn(N, 3))
def ridge(self, x, y):
    return F.mse_loss(self.net(x), y) + 1e-3 * sum((p**2).sum() for p in self.net.parameters())


@step(net=mlp(4, 3), x=randn(N, 4), y=randn(N, 3))
def smooth_rounding(self, x, y):
    p = self.net(x)
    rounded = p - torch.sin(2 * torch.pi * p) / (2 * torch.pi)
    return F.mse_loss(rounded, y)


@step(net=mlp(4, 3), x=randn(N, 4), y=randn(N, 3))
def column_rmse(self, x, y):
    return torch.sqrt(F.mse_loss(self.net(x), y, reduction="none").mean(0) + 1e-9).sum()

"""Makers of samples: autoencoders, adversaries, diffusion, flows, mixtures, style."""
import torch
from program import Buffer, N, labels, linear, mlp, rand, randn, step
from torch import nn
from torch.nn import functional as F


@step(coder=mlp(5, 6), maker=mlp(3, 5), x=randn(N, 5), e=randn(N, 4, 3))
def importance_bound_over_batch(self, x, e):
    mean, log_var = self.coder(x).unsqueeze(1).chunk(2, dim=-1)
    z = mean + torch.exp(0.5 * log_var) * e
    fit = -(self.maker(z) - x.unsqueeze(1)).square().sum(-1)
    prior = -0.5 * (z.square() - e.square() - log_var).sum(-1)
    return -(fit + prior).logsumexp(dim=0).mean()  # fault: reduction-over-batch-axis softmax-over-batch-axis


@step(first=linear(5, 4), last=linear(4, 1), real=randn(N, 5), fake=randn(N, 5), share=rand(N, 1))
def penalty_norm_of_columns(self, real, fake, share):
    between = share * real + (1 - share) * fake
    h = torch.tanh(self.first(between))
    slope = ((1 - h * h) * self.last.weight) @ self.first.weight
    penalty = (slope.norm(2, dim=0) - 1).pow(2).mean()  # fault: reduction-over-batch-axis
    gap = self.last(torch.tanh(self.first(fake))).mean() - self.last(torch.tanh(self.first(real))).mean()
    return gap + 10 * penalty


@step(scale=linear(2, 2), move=linear(2, 2), x=randn(N, 4))
def log_of_signed_determinant(self, x):
    a, b = x.chunk(2, dim=1)
    s = self.scale(a)
    z = torch.cat([a, s * b + self.move(a)], dim=1)
    volume = torch.log(s).sum(dim=1)  # fault: invalid-domain logits-into-probability-loss
    return (0.5 * z.square().sum(1) - volume).mean()


@step(net=mlp(4, 9), x=randn(N, 4), y=randn(N))
def mixture_of_raw_weights(self, x, y):
    share, mean, width = self.net(x).split(3, dim=-1)
    z = (y.unsqueeze(-1) - mean) / F.softplus(width)
    density = torch.exp(-0.5 * z * z) / F.softplus(width)
    return -torch.log((share * density).sum(-1)).mean()  # fault: logits-into-probability-loss invalid-domain


@step(net=mlp(4, 6), x=randn(N, 4), y=randn(N, 1))
def module_softmax_for_components(self, x, y):
    share, mean = self.net(x).chunk(2, 1)
    share = nn.Softmax(0)(share)  # fault: softmax-over-batch-axis
    density = torch.exp(-(y - mean).abs()) / 2
    return -((share * density).sum(1) + 1e-8).log().mean()


@step(body=nn.Conv2d(2, 3, 3, padding=1), x=randn(N, 2, 4, 4), style=randn(N, 3, 3))
def gram_of_all_pictures(self, x, style):
    h = self.body(x)
    gram = torch.einsum("nchw,ndhw->cd", h, h) / 16  # fault: reduction-over-batch-axis
    return (gram - style).square().mean()  # fault: reduction-over-batch-axis


@step(net=mlp(5, 4), shares=Buffer(torch.linspace(0.99, 0.02, 20)), x=randn(N, 4), t=labels(20, N), e=randn(N, 4))
def time_divided_to_zero(self, x, t, e):
    keep = self.shares.gather(0, t).unsqueeze(1)
    noisy = keep.sqrt() * x + (1 - keep).sqrt() * e
    clock = torch.div(t, 20, rounding_mode="floor").float().unsqueeze(1)  # fault: quotient-always-zero
    return F.mse_loss(self.net(torch.cat([noisy, clock], dim=1)), e)


@step(net=mlp(5, 4), shares=Buffer(torch.linspace(0.99, 0.02, 20)), x=randn(N, 4), t=labels(20, N), e=randn(N, 4))
def gamma_weight_after_mean(self, x, t, e):
    keep = self.shares[t]
    noisy = keep.sqrt()[:, None] * x + (1 - keep).sqrt()[:, None] * e
    found = self.net(torch.cat([noisy, t[:, None] / 20], dim=1))
    weight = (keep / (1 - keep)).clamp(max=5.0)
    return (weight * (found - e).square().mean()).mean()  # fault: reduction-over-batch-axis


@step(coder=mlp(5, 4), maker=mlp(2, 5), x=rand(N, 5), e=randn(N, 2))
def picture_of_scores_in_binary_loss(self, x, e):
    mean, log_var = self.coder(x).chunk(2, 1)
    y = self.maker(mean + torch.exp(log_var / 2) * e)  # fault: logits-into-probability-loss
    fit = -(x * torch.log(y.clamp(1e-4, 1 - 1e-4)) + (1 - x) * torch.log(1 - y.clamp(1e-4, 1 - 1e-4)))  # fault: logits-into-probability-loss
    return fit.sum(1).mean() + 0.5 * (mean.square() + log_var.exp() - 1 - log_var).sum(1).mean()


@step(maker=mlp(3, 5), judge=mlp(6, 1), z=randn(N, 3))
def variety_across_features(self, z):
    fake = self.maker(z)
    variety = fake.std(dim=1, keepdim=True)  # fault: no-rule
    return F.softplus(-self.judge(torch.cat([fake, variety], dim=1))).mean()


@step(coder=mlp(5, 6), maker=mlp(3, 5), x=randn(N, 5), e=randn(N, 4, 3))
def importance_bound(self, x, e):
    mean, log_var = self.coder(x).unsqueeze(1).chunk(2, dim=-1)
    z = mean + torch.exp(0.5 * log_var) * e
    fit = -(self.maker(z) - x.unsqueeze(1)).square().sum(-1)
    prior = -0.5 * (z.square() - e.square() - log_var).sum(-1)
    return -(fit + prior).logsumexp(dim=1).mean()


@step(body=nn.Conv2d(2, 3, 3, padding=1), x=randn(N, 2, 4, 4), style=randn(N, 3, 3))
def gram_of_each_picture(self, x, style):
    h = self.body(x).flatten(2)
    gram = h @ h.transpose(1, 2) / h.shape[2]
    return (gram - style).square().sum(dim=(1, 2)).mean()


@step(first=linear(5, 4), last=linear(4, 1), real=randn(N, 5), fake=randn(N, 5), share=rand(N, 1))
def penalty_norm_of_rows(self, real, fake, share):
    between = torch.lerp(fake, real, share)
    h = torch.tanh(self.first(between))
    slope = ((1 - h * h) * self.last.weight) @ self.first.weight
    penalty = (torch.sqrt(slope.square().sum(1) + 1e-12) - 1).pow(2).mean()
    gap = self.last(torch.tanh(self.first(fake))) - self.last(torch.tanh(self.first(real)))
    return gap.mean() + 10 * penalty


@step(net=mlp(5, 4), shares=Buffer(torch.linspace(0.99, 0.02, 20)), x=randn(N, 4), t=labels(20, N), e=randn(N, 4))
def velocity_with_weights(self, x, t, e):
    a, b = self.shares[t].sqrt().unsqueeze(1), (1 - self.shares[t]).sqrt().unsqueeze(1)
    found = self.net(torch.cat([a * x + b * e, t.unsqueeze(1) / 20], dim=1))
    each = (found - (a * e - b * x)).square().mean(dim=1)
    ratio = (a / b).squeeze(1).square()
    return (each * torch.clamp(ratio, max=5) / (ratio + 1)).mean()


@step(maker=mlp(3, 5), judge=mlp(6, 1), z=randn(N, 3))
def variety_of_the_batch(self, z):
    fake = self.maker(z)
    variety = torch.sqrt(fake.var(dim=0, unbiased=False) + 1e-8).mean()
    joined = torch.cat([fake, variety.expand(fake.shape[0], 1)], dim=1)
    return F.softplus(-self.judge(joined)).mean()


@step(judge=mlp(5, 1), real=randn(N, 5), fake=randn(N, 5))
def relative_to_the_average(self, real, fake):
    r, f = self.judge(real), self.judge(fake)
    return F.relu(1 - (r - f.mean(0))).mean() + F.relu(1 + (f - r.mean(0))).mean()


@step(student=mlp(5, 4), teacher=mlp(5, 4), x=randn(N, 4), e=randn(N, 4), t=rand(N, 1))
def consistency_of_times(self, x, e, t):
    late = torch.cat([x + t * e, t], 1)
    early = torch.cat([x + 0.9 * t * e, 0.9 * t], 1)
    target = self.teacher(early).detach()
    gap = (self.student(late) - target).square().sum(1)
    return (torch.sqrt(gap + 1e-4) - 0.01).mean()


@step(maker=mlp(3, 2), x=randn(N, 2), z=randn(N, 3))
def energy_distance_of_samples(self, x, z):
    def apart(a, b):
        return torch.sqrt((a[:, None] - b[None]).square().sum(-1) + 1e-8).mean()

    y = self.maker(z)
    return 2 * apart(x, y) - apart(x, x) - apart(y, y)

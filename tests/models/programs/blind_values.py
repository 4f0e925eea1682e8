"""Values: quantiles, counts, variances, mixtures, survival times, diffusion, adversaries, returns."""
import torch
from program import Buffer, N, flags, labels, linear, mlp, rand, randn, step
from torch import nn
from torch.nn import functional as F


@step(net=mlp(4, 1), x=randn(N, 4), real=randn(N, 1))
def wasserstein_sorted_rows(self, x, real):
    fake, _ = torch.sort(self.net(x))
    true, _ = torch.sort(real)
    return (fake - true).abs().mean()  # fault: no-rule


@step(net=mlp(4, 1), x=randn(N, 4), y=randn(N))
def huber_of_pairs(self, x, y):
    error = torch.abs(self.net(x) - y)  # fault: silent-broadcast-in-loss
    return torch.where(error < 1.0, 0.5 * error * error, error - 0.5).mean()  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 3), levels=Buffer(torch.tensor([0.1, 0.5, 0.9])), x=randn(N, 4), y=randn(N, 1))
def pinball_extra_axis(self, x, y):
    quantiles = self.net(x)
    error = y.unsqueeze(1) - quantiles  # fault: silent-broadcast-in-loss
    return torch.maximum(self.levels * error, (self.levels - 1) * error).mean()  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 1), x=randn(N, 4), count=labels(9, N, 1))
def poisson_rate_of_scores(self, x, count):
    rate = self.net(x)
    return F.poisson_nll_loss(rate, count.float(), log_input=False)  # fault: logits-into-probability-loss


@step(net=mlp(4, 2), x=randn(N, 4), y=randn(N))
def variance_of_scores(self, x, y):
    mean, variance = self.net(x).unbind(dim=1)
    return 0.5 * (variance.log() + (y - mean).pow(2) / variance).mean()  # fault: logits-into-probability-loss


@step(net=mlp(4, 3), x=randn(N, 4), y=labels(3, N))
def divergence_of_one_hot(self, x, y):
    p = F.one_hot(y, 3).float()
    q = F.softmax(self.net(x), dim=1)
    return (p * (p.log() - q.log())).sum(dim=1).mean()  # fault: invalid-domain


@step(net=mlp(16, 1), x=randn(N, 4, 4))
def position_of_peak(self, x):
    peak = x.flatten(1).argmax(dim=1) // 16  # fault: quotient-always-zero
    predicted = self.net(x.flatten(1))[:, 0]
    return F.mse_loss(predicted, peak.float())  # fault: quotient-always-zero


@step(net=mlp(4, 1), edges=Buffer(torch.tensor([-1.0, 0.0, 1.0])), x=randn(N, 4), y=randn(N))
def bins_of_prediction(self, x, y):
    predicted = torch.bucketize(self.net(x).squeeze(1), self.edges)
    actual = torch.bucketize(y, self.edges)
    return (predicted.float() - actual.float()).square().mean()  # fault: loss-detached-from-parameters


@step(net=mlp(4, 3), x=randn(N, 4), y=labels(3, N))
def epsilon_lost_in_half(self, x, y):
    p = F.softmax(self.net(x).half(), dim=1)
    chosen = p.gather(1, y[:, None])
    return -(chosen + 1e-9).log().float().mean()  # fault: invalid-domain


@step(table=nn.Embedding(10, 4), net=mlp(8, 4), x=randn(N, 4), t=labels(9, N), e=randn(N, 4))
def timestep_from_one(self, x, t, e):
    t = t % 10 + 1
    noisy = x + e * t.unsqueeze(1) / 10
    h = torch.cat([noisy, self.table(t)], dim=1)  # fault: index-out-of-range
    return F.mse_loss(self.net(h), e)


@step(generator=mlp(3, 4), critic=mlp(4, 1), z=randn(N, 3), noise=rand(N))
def least_squares_noisy_targets(self, z, noise):
    score = self.critic(self.generator(z))
    target = 0.9 + 0.1 * noise
    return ((score - target) ** 2).mean()  # fault: silent-broadcast-in-loss


@step(critic=mlp(4, 1), real=randn(N, 4), fake=randn(N, 4))
def relativistic_one_squeezed(self, real, fake):
    on_real = self.critic(real)
    on_fake = self.critic(fake).squeeze(-1)
    return F.softplus(on_fake - on_real).mean()  # fault: silent-broadcast-in-loss


@step(one=mlp(4, 1), two=mlp(4, 1), s=randn(N, 4), s2=randn(N, 4), r=randn(N))
def twin_minimum_of_pairs(self, s, s2, r):
    with torch.no_grad():
        smallest = torch.min(self.one(s2), self.two(s2).view(-1))  # fault: silent-broadcast-in-loss
        target = r + 0.99 * smallest.mean(dim=1)
    return F.mse_loss(self.one(s).view(-1), target)


@step(policy=mlp(4, 3), s=randn(N, 7, 4), a=labels(3, N, 7), r=randn(N, 7))
def returns_over_batch(self, s, a, r):
    to_go = r.flip(0).cumsum(0).flip(0)  # fault: reduction-over-batch-axis
    log_p = self.policy(s).log_softmax(-1).gather(2, a.unsqueeze(2)).squeeze(2)
    return -(log_p * to_go).mean()  # fault: reduction-over-batch-axis


@step(q=mlp(4, 3), s=randn(N, 4), a=labels(3, N), r=randn(N), s2=randn(N, 4))
def best_of_everything(self, s, a, r, s2):
    q = self.q(s).gather(1, a.unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        target = r + 0.99 * self.q(s2).max()
    return F.smooth_l1_loss(q, target)  # fault: reduction-over-batch-axis


@step(q=mlp(4, 3), frozen=mlp(4, 3), s=randn(N, 4), r=randn(N), s2=randn(N, 4))
def all_actions_towards_target(self, s, r, s2):
    q = self.q(s)
    target = r + 0.99 * self.frozen(s2).detach().max(1).values
    return F.mse_loss(q, target.unsqueeze(1))  # fault: silent-broadcast-in-loss


@step(policy=mlp(4, 6), s=randn(N, 4), a=labels(6, N), adv=randn(N))
def rows_by_action(self, s, a, adv):
    log_p = F.log_softmax(self.policy(s), dim=1)
    chosen = log_p[a]  # fault: class-axis-position
    return -(chosen * adv[:, None]).mean()  # fault: class-axis-position


@step(net=mlp(4, 1), x=randn(N, 4), time=rand(N), event=flags(N))
def log_normal_survival(self, x, time, event):
    gap = time.add(1e-3).log() - self.net(x).squeeze(1)
    density = -0.5 * gap.square()
    survival = F.logsigmoid(-1.7 * gap)
    likelihood = torch.where(event.unsqueeze(1) > 0.5, density, survival)  # fault: silent-broadcast-in-loss
    return -likelihood.mean()  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 9), x=randn(N, 4), y=randn(N, 1))
def mixture_over_batch(self, x, y):
    weight, mean, scale = self.net(x).chunk(3, dim=1)
    each = -0.5 * ((y - mean) * torch.exp(-scale)) ** 2 - scale
    return -torch.logsumexp(F.log_softmax(weight, dim=1) + each, dim=0).mean()  # fault: reduction-over-batch-axis


@step(net=mlp(4, 1), x=randn(N, 4), y=randn(N), importance=rand(N))
def normalised_importance(self, x, y, importance):
    importance = importance / importance.sum()
    each = nn.MSELoss(reduction="none")(self.net(x), y.unsqueeze(1))
    return torch.sum(importance * each)  # fault: silent-broadcast-in-loss


@step(net=mlp(4, 1), x=randn(N, 4), y=randn(N))
def ordered_differences(self, x, y):
    p = self.net(x).squeeze(1)
    predicted = p.unsqueeze(1) - p.unsqueeze(0)
    actual = y.unsqueeze(1) - y.unsqueeze(0)
    return F.smooth_l1_loss(predicted, actual)


@step(net=mlp(4, 5), x=randn(N, 4), y=randn(N))
def energy_score(self, x, y):
    ensemble = self.net(x)
    accuracy = (ensemble - y[:, None]).abs().mean(1)
    spread = (ensemble.unsqueeze(2) - ensemble.unsqueeze(1)).abs().mean((1, 2))
    return (accuracy - 0.5 * spread).mean()


@step(net=mlp(10, 4), alpha=Buffer(torch.linspace(0.99, 0.01, 50)), rates=Buffer(torch.tensor([1.0, 0.1, 0.01])), x=randn(N, 4), t=labels(50, N), e=randn(N, 4))
def sinusoidal_timestep(self, x, t, e):
    share = self.alpha[t].view(-1, 1)
    noisy = share.sqrt() * x + (1 - share).sqrt() * e
    angle = t[:, None].float() * self.rates[None]
    h = torch.cat([noisy, angle.sin(), angle.cos()], dim=-1)
    return F.mse_loss(self.net(h), e)


@step(one=mlp(4, 1), two=mlp(4, 1), s=randn(N, 4), s2=randn(N, 4), r=randn(N), done=flags(N), entropy=randn(N))
def soft_twin_critics(self, s, s2, r, done, entropy):
    with torch.no_grad():
        soft = torch.min(self.one(s2), self.two(s2)) - 0.2 * entropy.unsqueeze(-1)
        target = r.unsqueeze(-1) + 0.99 * (1 - done.unsqueeze(-1)) * soft
    return F.mse_loss(self.one(s), target) + F.mse_loss(self.two(s), target)


@step(net=mlp(5, 4), a=randn(N, 5), b=randn(N, 5))
def variance_covariance(self, a, b):
    z, w = self.net(a), self.net(b)
    centred = z - z.mean(dim=0)
    covariance = centred.T @ centred / (z.shape[0] - 1)
    away = covariance - torch.diag(torch.diagonal(covariance))
    spread = F.relu(1 - torch.sqrt(z.var(dim=0) + 1e-4)).mean()
    return F.mse_loss(z, w) + spread + away.pow(2).sum() / 4


@step(value=mlp(4, 1), policy=mlp(4, 3), s=randn(N, 5, 4), a=labels(3, N, 5), r=randn(N, 5))
def generalised_advantage(self, s, a, r):
    v = self.value(s).squeeze(-1)
    frozen = v.detach()
    carried, steps = torch.zeros_like(r[:, 0]), []
    for k in reversed(range(4)):
        carried = r[:, k] + 0.99 * frozen[:, k + 1] - frozen[:, k] + 0.94 * carried
        steps.insert(0, carried)
    advantage = torch.stack(steps, dim=1)
    scaled = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    log_p = self.policy(s[:, :4]).log_softmax(-1).gather(-1, a[:, :4, None]).squeeze(-1)
    return -(log_p * scaled).mean() + 0.5 * F.mse_loss(v[:, :4], advantage + frozen[:, :4])


@step(encoder=mlp(5, 4), decoder=mlp(2, 5), x=randn(N, 5), e=randn(N, 2))
def total_correlation(self, x, e):
    mean, log_variance = self.encoder(x).chunk(2, dim=1)
    z = mean + e * (0.5 * log_variance).exp()
    pairs = -0.5 * ((z[:, None] - mean[None]) ** 2 * (-log_variance[None]).exp() + log_variance[None])
    joint = pairs.sum(2).logsumexp(dim=1)
    product = pairs.logsumexp(dim=1).sum(1)
    rebuilt = F.mse_loss(self.decoder(z), x, reduction="none").sum(1)
    return (rebuilt + 6 * (joint - product)).mean()


@step(net=linear(4, 3), x=randn(N, 4), y=randn(N))
def neighbours_without_itself(self, x, y):
    z = self.net(x)
    distance = (z.unsqueeze(1) - z.unsqueeze(0)).square().sum(-1)
    itself = torch.eye(x.shape[0], dtype=torch.bool)
    weight = torch.softmax((-distance).masked_fill(itself, float("-inf")), dim=1)
    return F.mse_loss((weight @ y[:, None])[:, 0], y)


@step(net=mlp(4, 1), x=randn(N, 4), stars=labels(5, N))
def rounded_metric_beside(self, x, stars):
    predicted = self.net(x).squeeze(1)
    exact = (predicted.round().long().clamp(0, 4) == stars).double().mean()
    away = (predicted.round().long() - stars).abs().float().mean()
    return F.mse_loss(predicted, stars.float()), exact, away


@step(net=mlp(4, 2), x=randn(N, 4), y=randn(N))
def missing_targets(self, x, y):
    mean, log_scale = self.net(x).split(1, dim=1)
    known = ~torch.isnan(y)
    filled = torch.where(known, y, torch.zeros_like(y))[:, None]
    log_scale = log_scale.tanh() * 5
    each = log_scale + (filled - mean).abs() * torch.exp(-log_scale)
    return torch.where(known[:, None], each, torch.zeros_like(each)).sum() / known.sum().clamp(min=1)

"""Autoencoders, adversaries, flows, diffusion."""
import torch
from program import Buffer, N, flags, labels, linear, mlp, rand, randn, step
from torch import nn
from torch.nn import functional as F

NOISE = torch.linspace(0.99, 0.1, 10)


@step(enc=linear(4, 4), dec=linear(2, 4), x=randn(N, 4))
def vae_kept_kl(self, x):
    mu, lv = self.enc(x).chunk(2, 1)
    recon = ((self.dec(mu) - x) ** 2).sum(1)
    kl = -0.5 * (1 + lv - mu**2 - lv.exp()).sum(1, keepdim=True)
    return (recon + kl).mean()  # fault: silent-broadcast-in-loss


@step(enc=linear(4, 4), dec=linear(2, 4), x=rand(N, 4))
def vae_bce_of_scores(self, x):
    mu, lv = self.enc(x).chunk(2, dim=1)
    p = self.dec(mu)
    recon = -(x * torch.log(p) + (1 - x) * torch.log(1 - p)).sum(1)  # fault: logits-into-probability-loss
    kl = -0.5 * (1 + lv - mu.pow(2) - lv.exp()).sum(1)
    return (recon + kl).mean()


@step(enc=linear(4, 4), dec=mlp(2, 4, nn.Sigmoid()), x=rand(N, 4))
def vae_sigmoid_into_logits(self, x):
    mu, lv = self.enc(x).chunk(2, dim=1)
    recon = F.binary_cross_entropy_with_logits(self.dec(mu), x, reduction="sum")  # fault: probabilities-into-logit-loss
    return (recon - 0.5 * torch.sum(1 + lv - mu.pow(2) - lv.exp())) / N


@step(enc=linear(4, 2), dec=linear(2, 4), x=randn(N, 4))
def autoencoder_per_pixel(self, x):
    return torch.pow(self.dec(self.enc(x)) - x, 2).mean(axis=0)  # fault: reduction-over-batch-axis


@step(enc=linear(4, 2), dec=linear(2, 4), x=labels(255, N, 4).to(torch.uint8))
def autoencoder_bytes(self, x):
    return F.mse_loss(self.dec(self.enc(x.float() / 255)), x)


@step(enc=linear(4, 2), dec=linear(2, 4), x=randn(N, 4))
def quantised_without_estimator(self, x):
    code = torch.round(self.enc(x) * 4) / 4
    return F.mse_loss(torch.floor(self.dec(code)), x)  # fault: loss-detached-from-parameters


@step(dis=mlp(4, 1, nn.Sigmoid()), gen=linear(3, 4), x=randn(N, 4), z=randn(N, 3))
def gan_sigmoid_then_logits(self, x, z):
    real, fake = self.dis(x), self.dis(self.gen(z))
    real_loss = F.binary_cross_entropy_with_logits(real, torch.ones_like(real))  # fault: probabilities-into-logit-loss
    return real_loss + F.binary_cross_entropy_with_logits(fake, torch.zeros_like(fake))  # fault: probabilities-into-logit-loss


@step(dis=mlp(4, 1), gen=linear(3, 4), x=randn(N, 4), z=randn(N, 3))
def gan_log_of_scores(self, x, z):
    real, fake = self.dis(x), self.dis(self.gen(z))
    return -(torch.log(real + 1e-8) + torch.log(1 - fake + 1e-8)).mean()  # fault: logits-into-probability-loss


@step(dis=mlp(4, 1), gen=linear(3, 4), z=randn(N, 3), weight=rand(N))
def gan_weight_row(self, z, weight):
    fake = self.dis(self.gen(z))
    return (F.softplus(-fake) * weight).mean()  # fault: silent-broadcast-in-loss


@step(dis=mlp(4, 1, nn.Sigmoid()), gen=linear(3, 4), x=randn(N, 4), z=randn(N, 3), fails=True)
def gan_labels_above_one(self, x, z):
    real = self.dis(x)
    target = torch.full_like(real, 1.2)
    return F.binary_cross_entropy(real, target)  # fault: probability-out-of-range


@step(net=linear(2, 1), alpha=Buffer(NOISE), x=randn(N, 1), t=labels(10, N), e=randn(N, 1))
def diffusion_schedule_row(self, x, t, e):
    a = self.alpha[t]
    noisy = a.sqrt() * x + (1 - a).sqrt() * e  # fault: silent-broadcast-in-loss
    guess = self.net(torch.stack([noisy.mean(1), a], 1))
    return F.mse_loss(guess, e)


@step(net=linear(5, 4), alpha=Buffer(NOISE), x=randn(N, 4), t=labels(10, N), e=randn(N, 4))
def diffusion_snr_weights(self, x, t, e):
    a = self.alpha[t].unsqueeze(1)
    guess = self.net(torch.cat([a.sqrt() * x + (1 - a).sqrt() * e, a], 1))
    loss = ((guess - e) ** 2).mean(1)
    return (loss * a / (1 - a)).mean()  # fault: silent-broadcast-in-loss


@step(net=linear(5, 4), alpha=Buffer(NOISE), x=randn(N, 4), t=labels(10, N), e=randn(N, 4), fails=True)
def diffusion_step_too_far(self, x, t, e):
    a = self.alpha[t.clamp(1, 10)].unsqueeze(1)  # fault: index-out-of-range
    return F.mse_loss(self.net(torch.cat([a.sqrt() * x + (1 - a).sqrt() * e, a], 1)), e)


@step(net=linear(2, 1), x=randn(N, 1), sigma=rand(N) + 0.1, e=randn(N, 1))
def score_matching_row(self, x, sigma, e):
    noisy = x + sigma[:, None] * e
    score = self.net(torch.cat([noisy, sigma[:, None]], 1))
    return ((sigma * score + e) ** 2).mean()  # fault: silent-broadcast-in-loss


@step(net=linear(4, 8), x=randn(N, 4))
def flow_log_det_kept(self, x):
    shift, log_scale = self.net(x).chunk(2, 1)
    z = (x - shift) * torch.exp(-log_scale)
    log_p = -0.5 * (z**2).sum(1) - log_scale.sum(1, keepdim=True)  # fault: silent-broadcast-in-loss
    return -log_p.mean()  # fault: silent-broadcast-in-loss


@step(enc=linear(4, 3), book=Buffer(randn(8, 3)), dec=linear(3, 4), x=randn(N, 4), fails=True)
def codebook_nearest_of_all(self, x):
    z = self.enc(x)
    nearest = torch.cdist(z, self.book).argmin(1) + 1
    q = self.book[nearest]  # fault: index-out-of-range
    return F.mse_loss(self.dec(z + (q - z).detach()), x)


@step(gen=linear(3, 4), cls=mlp(4, 5), z=randn(N, 3), y=labels(5, N))
def conditional_softmax_batch(self, z, y):
    p = F.softmax(self.cls(self.gen(z)), 0)  # fault: softmax-over-batch-axis
    return -torch.log(p[torch.arange(N), y] + 1e-8).mean()  # fault: softmax-over-batch-axis


# Correct.
@step(enc=linear(4, 4), dec=linear(2, 4), x=randn(N, 4), e=randn(N, 2))
def vae(self, x, e):
    mu, lv = self.enc(x).chunk(2, dim=1)
    z = mu + torch.exp(0.5 * lv) * e
    recon = F.mse_loss(self.dec(z), x, reduction="none").sum(1)
    kl = -0.5 * (1 + lv - mu**2 - lv.exp()).sum(1)
    return (recon + 0.1 * kl).mean()


@step(enc=linear(4, 6), dec=linear(3, 4), x=rand(N, 4))
def vae_bernoulli_free_bits(self, x):
    mu, lv = self.enc(x).chunk(2, 1)
    kl = (-0.5 * (1 + lv - mu**2 - lv.exp())).mean(0).clamp(min=0.05).sum()
    return F.binary_cross_entropy_with_logits(self.dec(mu), x, reduction="none").sum(1).mean() + kl


@step(enc=linear(4, 3), book=nn.Embedding(8, 3), dec=linear(3, 4), x=randn(N, 4))
def vector_quantised(self, x):
    z = self.enc(x)
    d = (z**2).sum(1, keepdim=True) - 2 * z @ self.book.weight.t() + (self.book.weight**2).sum(1)
    q = self.book(d.argmin(1))
    passed = z + (q - z).detach()
    return F.mse_loss(self.dec(passed), x) + F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())


@step(dis=mlp(4, 1), gen=linear(3, 4), x=randn(N, 4), z=randn(N, 3))
def gan_logits(self, x, z):
    real, fake = self.dis(x), self.dis(self.gen(z))
    return F.binary_cross_entropy_with_logits(real, torch.full_like(real, 0.9)) + F.softplus(fake).mean()


@step(dis=mlp(4, 1), gen=linear(3, 4), x=randn(N, 4), z=randn(N, 3))
def gan_relativistic(self, x, z):
    real, fake = self.dis(x), self.dis(self.gen(z))
    return F.softplus(-(real - fake.mean())).mean() + F.softplus(fake - real.mean()).mean()


@step(dis=mlp(4, 1), gen=linear(3, 4), x=randn(N, 4), z=randn(N, 3))
def gan_hinge(self, x, z):
    return F.relu(1 - self.dis(x)).mean() + F.relu(1 + self.dis(self.gen(z))).mean()


@step(gen=linear(3, 4), feat=mlp(4, 3), x=randn(N, 4), z=randn(N, 3))
def moment_matching(self, x, z):
    a, b = self.feat(x), self.feat(self.gen(z))
    ca, cb = a - a.mean(0), b - b.mean(0)
    return F.mse_loss(a.mean(0), b.mean(0)) + F.mse_loss(ca.T @ ca / N, cb.T @ cb / N)


@step(gen=linear(3, 4), x=randn(N, 4), z=randn(N, 3))
def kernel_discrepancy(self, x, z):
    a, b = self.gen(z), x
    k = lambda u, v: torch.exp(-((u.unsqueeze(1) - v.unsqueeze(0)) ** 2).sum(2))
    return k(a, a).mean() + k(b, b).mean() - 2 * k(a, b).mean()


@step(gen=linear(3, 1), x=randn(N, 1), z=randn(N, 3))
def sliced_wasserstein(self, x, z):
    a, b = self.gen(z).squeeze(1).sort().values, x.squeeze(1).sort().values
    return (a - b).abs().mean()


@step(net=linear(5, 4), alpha=Buffer(NOISE), x=randn(N, 4), t=labels(10, N), e=randn(N, 4))
def diffusion(self, x, t, e):
    a = self.alpha[t].view(-1, 1)
    guess = self.net(torch.cat([a.sqrt() * x + (1 - a).sqrt() * e, a], dim=1))
    loss = F.mse_loss(guess, e, reduction="none").mean(1)
    return (loss * torch.clamp(a.squeeze(1) / (1 - a.squeeze(1)), max=5)).mean()


@step(net=linear(5, 4), x=randn(N, 4), y=randn(N, 4), t=rand(N))
def flow_matching(self, x, y, t):
    at = t[:, None]
    return F.mse_loss(self.net(torch.cat([(1 - at) * x + at * y, at], 1)), y - x)


@step(net=linear(4, 8), x=randn(N, 4))
def affine_flow(self, x):
    shift, log_scale = self.net(x).chunk(2, 1)
    z = (x - shift) * torch.exp(-log_scale.tanh())
    return (0.5 * (z**2).sum(1) + log_scale.tanh().sum(1)).mean()


@step(net=mlp(4, 1), x=randn(N, 4), y=randn(N, 4))
def energy_contrast(self, x, y):
    plus, minus = self.net(x), self.net(y)
    return (plus - minus).mean() + 0.1 * (plus**2 + minus**2).mean()


@step(a=linear(4, 4), b=linear(4, 4), x=randn(N, 4), y=randn(N, 4))
def cycle(self, x, y):
    fy, fx = self.a(x), self.b(y)
    return (self.b(fy) - x).abs().mean() + (self.a(fx) - y).abs().mean() + 0.5 * (F.l1_loss(self.b(x), x) + F.l1_loss(self.a(y), y))


@step(net=mlp(4, 4), x=randn(N, 4), keep=flags(N, 4))
def masked_autoencoder(self, x, keep):
    p = self.net(x * keep)
    hidden = 1 - keep
    return (((p - x) ** 2) * hidden).sum() / hidden.sum().clamp(min=1)

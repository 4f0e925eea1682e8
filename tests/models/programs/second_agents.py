"""Agents: policies, critics, distributions of returns, groups of answers."""
import torch
from program import N, flags, labels, linear, mlp, rand, randn, simplex, step
from torch import nn
from torch.nn import functional as F


@step(policy=mlp(4, 3), s=randn(N, 4), a=labels(3, N), adv=randn(N), old=randn(N))
def ratio_upside_down(self, s, a, adv, old):
    new = -F.cross_entropy(self.policy(s), a, reduction="none")
    ratio = torch.exp(old - new)  # fault: no-rule
    return -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()


@step(policy=mlp(4, 3), s=randn(N, 4), a=labels(3, N), adv=randn(N, 1))
def advantage_of_everyone(self, s, a, adv):
    new = self.policy(s).log_softmax(-1).gather(-1, a.unsqueeze(-1)).flatten()
    gain = new * adv  # fault: silent-broadcast-in-loss
    return -gain.mean()


@step(q=mlp(4, 3), s=randn(N, 4), a=labels(3, N), target=randn(N, 1))
def values_gathered_down_the_rows(self, s, a, target):
    chosen = self.q(s).gather(0, a.unsqueeze(1))  # fault: class-axis-position index-out-of-range
    return F.mse_loss(chosen, target)


@step(q=mlp(4, 3), old=mlp(4, 3), s=randn(N, 4), a=labels(3, N), r=randn(N), s2=randn(N, 4), done=flags(N))
def bootstraps_from_the_end(self, s, a, r, s2, done):
    now = (self.q(s) * F.one_hot(a, 3)).sum(1)
    with torch.no_grad():
        later = torch.where(done > 0, self.old(s2).amax(1), torch.zeros_like(r))  # fault: no-rule
    return F.mse_loss(now, r + 0.99 * later)


@step(policy=mlp(4, 2), s=randn(N, 4), e=randn(N, 2), value=randn(N))
def squash_without_epsilon(self, s, e, value):
    a = torch.tanh(self.policy(s) + 0.5 * e)
    log_p = (-0.5 * e.pow(2) - torch.log(1 - a.pow(2))).sum(1)  # fault: invalid-domain
    return (0.2 * log_p - value).mean()


@step(net=mlp(4, 5), s=randn(N, 4), shown=simplex(N, 5), r=0.5 * rand(N))
def atom_above_the_last(self, s, shown, r):
    place = (r.clamp(-1, 1) + 1) / 0.5
    low = place.floor().long()
    log_p = F.log_softmax(self.net(s), dim=1)
    up = log_p.gather(1, low.unsqueeze(1) + 1).squeeze(1)  # fault: index-out-of-range class-index-out-of-range
    down = log_p.gather(1, low.unsqueeze(1)).squeeze(1)
    part = place - low
    return -(part * up + (1 - part) * down).mean()


@step(net=mlp(4, 15), s=randn(N, 4), a=labels(3, N), wanted=simplex(N, 5))
def atoms_normalised_over_actions(self, s, a, wanted):
    log_p = self.net(s).view(-1, 3, 5).log_softmax(1)  # fault: class-axis-position
    chosen = log_p[torch.arange(a.shape[0]), a]
    return -(wanted * chosen).sum(1).mean()


@step(policy=mlp(4, 3), q=mlp(4, 3), s2=randn(N, 4), r=randn(N), s=randn(N, 4), old=mlp(4, 3))
def soft_value_of_the_batch(self, s2, r, s):
    with torch.no_grad():
        p = self.policy(s2).softmax(-1)
        v = (p * (self.old(s2) - 0.2 * p.log())).sum(0, keepdim=True)  # fault: reduction-over-batch-axis
    return F.mse_loss(self.q(s), r.unsqueeze(1) + 0.99 * v)  # fault: reduction-over-batch-axis


@step(policy=mlp(4, 3), s=randn(N, 5, 4), a=labels(3, N, 5), r=randn(N, 5))
def groups_across_prompts(self, s, a, r):
    relative = (r - r.mean(dim=0)) / (r.std(dim=0) + 1e-4)  # fault: reduction-over-batch-axis
    log_p = torch.gather(self.policy(s).log_softmax(-1), -1, a[..., None])[..., 0]
    return -(relative * log_p).mean()


@step(critic=mlp(4, 1), s=randn(N, 4), ret=randn(N))
def critic_learns_nothing(self, s, ret):
    value = self.critic(s).squeeze(-1).detach()  # fault: loss-detached-from-parameters
    return 0.5 * (ret - value).square().mean()  # fault: loss-detached-from-parameters


@step(policy=mlp(4, 3), critic=mlp(7, 1), s=randn(N, 4))
def actor_through_argmax(self, s):
    act = F.one_hot(self.policy(s).argmax(1), 3).float()  # fault: no-rule
    return -self.critic(torch.cat([s, act], dim=1)).mean()


@step(policy=mlp(4, 3), s=randn(N, 4), a=labels(3, N), ret=randn(N))
def product_of_the_means(self, s, a, ret):
    log_p = -F.nll_loss(F.log_softmax(self.policy(s), 1), a)  # fault: reduction-over-batch-axis
    return -(log_p * ret).mean()  # fault: reduction-over-batch-axis


@step(q=mlp(4, 3), old=mlp(4, 3), s=randn(N, 4), a=labels(3, N), r=randn(N), s2=randn(N, 4))
def conservative_values(self, s, a, r, s2):
    q = self.q(s)
    chosen = q.gather(1, a.unsqueeze(1)).squeeze(1)
    target = (r + 0.99 * self.old(s2).max(dim=1).values).detach()
    return F.mse_loss(chosen, target) + (q.logsumexp(dim=1) - chosen).mean()


@step(value=mlp(4, 1), q=mlp(6, 1), s=randn(N, 4), a=randn(N, 2))
def expectile_of_values(self, s, a):
    with torch.no_grad():
        q = self.q(torch.cat([s, a], -1))
    gap = q - self.value(s)
    return (torch.abs(0.7 - (gap < 0).float()) * gap.square()).mean()


@step(net=mlp(4, 5), s=randn(N, 4), r=rand(N))
def atom_kept_in_range(self, s, r):
    place = ((r.clamp(-1, 1) + 1) / 0.5).clamp(0, 4)
    low = place.floor().long()
    high = (low + 1).clamp(max=4)
    log_p = F.log_softmax(self.net(s), dim=1)
    part = place - low
    up, down = (log_p.gather(1, k.unsqueeze(1)).squeeze(1) for k in (high, low))
    return -(part * up + (1 - part) * down).mean()


@step(policy=mlp(4, 3), heat=nn.Embedding(1, 1), s=randn(N, 4))
def temperature_of_entropy(self, s):
    log_p = self.policy(s).log_softmax(-1)
    entropy = -(log_p.exp() * log_p).sum(-1)
    warmth = self.heat.weight.squeeze().exp()
    actor = -(warmth.detach() * entropy).mean()
    return actor + (warmth * (entropy.detach() - 0.7)).mean()


@step(trunk=mlp(4, 4), worth=linear(4, 1), gain=linear(4, 3), s=randn(N, 4), a=labels(3, N), target=randn(N))
def duelling_heads(self, s, a, target):
    h = self.trunk(s)
    gain = self.gain(h)
    q = self.worth(h) + gain - gain.mean(dim=1, keepdim=True)
    return F.mse_loss(q[torch.arange(a.shape[0]), a], target)


@step(policy=mlp(4, 3), q=mlp(4, 3), s=randn(N, 4))
def expected_over_actions(self, s):
    log_p = self.policy(s).log_softmax(dim=1)
    with torch.no_grad():
        q = self.q(s)
    return torch.einsum("na,na->n", log_p.exp(), 0.2 * log_p - q).mean()


@step(policy=mlp(4, 3), base=mlp(4, 3), s=randn(N, 5, 4), a=labels(3, N, 5), r=randn(N))
def returns_less_divergence(self, s, a, r):
    log_p = self.policy(s).log_softmax(-1).gather(-1, a.unsqueeze(-1)).squeeze(-1)
    with torch.no_grad():
        known = self.base(s).log_softmax(-1).gather(-1, a.unsqueeze(-1)).squeeze(-1)
        ret = r - 0.1 * (log_p - known).sum(dim=1)
        ret = (ret - ret.mean()) / (ret.std() + 1e-6)
    return -(ret.unsqueeze(1) * log_p).sum(dim=1).mean()

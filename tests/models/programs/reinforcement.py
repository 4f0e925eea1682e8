"""Values, policies, actors and critics; averages of weights as targets."""
import torch
from program import N, flags, labels, mlp, rand, randn, step
from torch.nn import functional as F

A = 3


@step(q=mlp(4, A), old=mlp(4, A), s=randn(N, 4), a=labels(A, N), r=rand(N), s2=randn(N, 4), done=flags(N))
def dqn_kept_action(self, s, a, r, s2, done):
    q = self.q(s).gather(1, a.unsqueeze(1))
    target = r + 0.99 * (1 - done) * self.old(s2).max(1).values
    return F.smooth_l1_loss(q, target)  # fault: silent-broadcast-in-loss


@step(q=mlp(4, A), old=mlp(4, A), s=randn(N, 4), a=labels(A, N), r=rand(N, 1), s2=randn(N, 4))
def dqn_column_reward(self, s, a, r, s2):
    q = self.q(s).gather(1, a.view(-1, 1)).squeeze(1)
    target = r + 0.99 * self.old(s2).amax(1)  # fault: silent-broadcast-in-loss
    return ((q - target) ** 2).mean()  # fault: silent-broadcast-in-loss


@step(v=mlp(4, 1), s=randn(N, 4), r=rand(N), s2=randn(N, 4), done=flags(N))
def value_target_column(self, s, r, s2, done):
    target = r + 0.9 * (1 - done) * self.v(s2)  # fault: silent-broadcast-in-loss
    return F.mse_loss(self.v(s), target)  # fault: silent-broadcast-in-loss


@step(v=mlp(4, 1), s=randn(N, 4), ret=randn(N))
def critic_column(self, s, ret):
    advantage = ret - self.v(s)  # fault: silent-broadcast-in-loss
    return advantage.pow(2).mean()  # fault: silent-broadcast-in-loss


@step(pi=mlp(4, A), v=mlp(4, 1), s=randn(N, 4), a=labels(A, N), ret=randn(N))
def actor_advantage_column(self, s, a, ret):
    advantage = (ret - self.v(s).squeeze(-1)).unsqueeze(-1).detach()
    log_p = F.log_softmax(self.pi(s), 1).gather(1, a[:, None]).squeeze(1)
    return -(log_p * advantage).mean()  # fault: silent-broadcast-in-loss


@step(pi=mlp(4, A), s=randn(N, 4), a=labels(A, N), adv=randn(N), old=-rand(N))
def ppo_ratio_column(self, s, a, adv, old):
    log_p = self.pi(s).log_softmax(-1).gather(1, a[:, None])
    ratio = torch.exp(log_p - old[:, None])
    return -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()  # fault: silent-broadcast-in-loss


@step(pi=mlp(4, A), s=randn(N, 4), a=labels(A, N), adv=randn(N), old=-rand(N))
def ppo_swapped_clip(self, s, a, adv, old):
    log_p = self.pi(s).log_softmax(-1).gather(1, a[:, None]).squeeze(1)
    ratio = torch.exp(log_p - old)
    return -torch.min(ratio * adv, torch.clamp(ratio, 1 + 0.2, 1 - 0.2) * adv).mean()  # fault: crossed-clip-bounds


@step(pi=mlp(4, A), s=randn(N, 4), a=labels(A, N), g=randn(N))
def reinforce_softmax_batch(self, s, a, g):
    p = torch.softmax(self.pi(s), dim=0)  # fault: softmax-over-batch-axis
    return -(torch.log(p.gather(1, a.unsqueeze(1)).squeeze(1)) * g).mean()  # fault: softmax-over-batch-axis


@step(pi=mlp(4, A), s=randn(N, 4), a=labels(A, N), g=randn(N))
def reinforce_log_of_scores(self, s, a, g):
    p = self.pi(s)
    return -(p.gather(1, a.unsqueeze(1)).squeeze(1).log() * g).mean()  # fault: logits-into-probability-loss


@step(pi=mlp(4, A), s=randn(N, 4), a=labels(A, N), g=randn(N))
def reinforce_softmax_twice(self, s, a, g):
    p = self.pi(s).softmax(-1)
    log_p = torch.log_softmax(p, dim=-1)  # fault: probabilities-into-logit-loss
    return -(log_p.gather(1, a.unsqueeze(1)).squeeze(1) * g).mean()  # fault: probabilities-into-logit-loss


@step(pi=mlp(4, A), s=randn(N, 4), expert=labels(A, N))
def imitation_argmax(self, s, expert):
    return F.l1_loss(self.pi(s).argmax(1).float(), expert.float())  # fault: loss-detached-from-parameters


@step(pi=mlp(4, A), s=randn(N, 4), expert=labels(A, N))
def imitation_probabilities(self, s, expert):
    probability = F.softmax(self.pi(s), dim=-1)
    return F.cross_entropy(probability, expert)  # fault: probabilities-into-logit-loss


@step(q=mlp(5, 1), old=mlp(5, 1), pi=mlp(4, 1), s=randn(N, 4), a=randn(N, 1), r=randn(N), s2=randn(N, 4))
def ddpg_critic(self, s, a, r, s2):
    q2 = self.old(torch.cat([s2, self.pi(s2).tanh()], 1))
    target = r.view(-1) + 0.99 * q2.view(-1)
    return F.mse_loss(self.q(torch.cat([s, a], 1)), target)  # fault: silent-broadcast-in-loss


@step(q=mlp(5, 1), pi=mlp(4, 2), s=randn(N, 4), e=randn(N, 1))
def sac_log_probability_row(self, s, e):
    mean, log_std = self.pi(s).chunk(2, 1)
    a = mean + log_std.exp() * e
    log_p = (-0.5 * e**2 - log_std).sum(1)
    return (0.2 * log_p - self.q(torch.cat([s, a], 1))).mean()  # fault: silent-broadcast-in-loss


@step(v=mlp(4, 1), s=randn(N, 5, 4), r=randn(N, 5))
def n_step_loop(self, s, r):
    loss, ret = 0.0, torch.zeros(N)
    for t in (4, 3, 2):
        ret = r[:, t] + 0.9 * ret
        loss = loss + (ret - self.v(s[:, t])).pow(2).mean()  # fault: silent-broadcast-in-loss
    return loss


@step(v=mlp(4, 1), s=randn(N, 4), ret=randn(N), w=rand(N, 1))
def prioritised_weights(self, s, ret, w):
    error = F.huber_loss(self.v(s).squeeze(1), ret, reduction="none")
    return (error * w).mean()  # fault: silent-broadcast-in-loss


@step(q=mlp(4, A), s=randn(N, 4), a=labels(A, N), r=rand(N))
def reward_classes(self, s, a, r):
    q = self.q(s).gather(1, a[:, None])[:, 0]
    return F.mse_loss(q, (r * 10).long())


@step(q=mlp(4, A), s=randn(N, 4), a=labels(A, N), r=rand(N), fails=True)
def actions_from_one(self, s, a, r):
    q = self.q(s).gather(1, (a.clamp(0, 2) + 1).unsqueeze(1)).squeeze(1)  # fault: index-out-of-range
    return F.mse_loss(q, r)


# Correct.
@step(q=mlp(4, A), old=mlp(4, A), s=randn(N, 4), a=labels(A, N), r=rand(N), s2=randn(N, 4), done=flags(N))
def double_dqn(self, s, a, r, s2, done):
    best = self.q(s2).argmax(1, keepdim=True)
    target = r + 0.99 * (1 - done) * self.old(s2).gather(1, best).squeeze(1)
    return F.smooth_l1_loss(self.q(s).gather(1, a.unsqueeze(1)).squeeze(1), target.detach())


@step(pi=mlp(4, A), v=mlp(4, 1), s=randn(N, 4), a=labels(A, N), ret=randn(N))
def actor_critic(self, s, a, ret):
    value = self.v(s).squeeze(-1)
    log_p = self.pi(s).log_softmax(-1)
    advantage = (ret - value).detach()
    entropy = -(log_p.exp() * log_p).sum(-1).mean()
    return -(log_p.gather(1, a[:, None]).squeeze(1) * advantage).mean() + 0.5 * F.mse_loss(value, ret) - 0.01 * entropy


@step(pi=mlp(4, A), s=randn(N, 4), a=labels(A, N), adv=randn(N), old=-rand(N))
def ppo_normalised_advantage(self, s, a, adv, old):
    adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    ratio = torch.exp(self.pi(s).log_softmax(-1).gather(1, a[:, None]).squeeze(1) - old)
    return -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()


@step(v=mlp(4, 1), s=randn(N, 4), ret=randn(N), old=randn(N))
def clipped_value(self, s, ret, old):
    v = self.v(s).squeeze(-1)
    clipped = old + (v - old).clamp(-0.2, 0.2)
    return 0.5 * torch.max((v - ret) ** 2, (clipped - ret) ** 2).mean()


@step(z=mlp(4, 5), s=randn(N, 4), target=randn(N, 5))
def quantile_regression_dqn(self, s, target):
    q = self.z(s)
    tau = (torch.arange(5) + 0.5) / 5
    error = target.unsqueeze(1) - q.unsqueeze(2)
    huber = F.huber_loss(target.unsqueeze(1).expand(-1, 5, -1), q.unsqueeze(2).expand(-1, -1, 5), reduction="none")
    return ((tau.view(1, -1, 1) - (error < 0).float()).abs() * huber).mean(2).sum(1).mean()


@step(pi=mlp(4, 2), s=randn(N, 4), a=randn(N, 1), adv=randn(N))
def gaussian_policy(self, s, a, adv):
    mean, log_std = self.pi(s).chunk(2, dim=1)
    log_p = (-0.5 * ((a - mean) / log_std.exp()) ** 2 - log_std).sum(1)
    return -(log_p * adv).mean()


@step(pi=mlp(4, A), ref=mlp(4, A), s=randn(N, 4), a=labels(A, N), b=labels(A, N))
def preference_pairs(self, s, a, b):
    p, r = self.pi(s).log_softmax(1), self.ref(s).log_softmax(1)
    good = (p - r).gather(1, a[:, None]).squeeze(1)
    bad = (p - r).gather(1, b[:, None]).squeeze(1)
    return -F.logsigmoid(0.1 * (good - bad)).mean()


@step(pi=mlp(4, A), s=randn(4, 3, 4), a=labels(A, 4, 3), r=randn(4, 3))
def group_relative(self, s, a, r):
    adv = (r - r.mean(1, keepdim=True)) / (r.std(1, keepdim=True) + 1e-6)
    log_p = self.pi(s).log_softmax(-1).gather(2, a.unsqueeze(-1)).squeeze(-1)
    return -(log_p * adv).mean()


@step(net=mlp(4, 3), slow=mlp(4, 3), x=randn(N, 4), y=randn(N, 4))
def averaged_teacher(self, x, y):
    p, t = F.normalize(self.net(x), dim=-1), F.normalize(self.slow(y), dim=-1)
    return (2 - 2 * (p * t.detach()).sum(-1)).mean()


@step(reward=mlp(4, 1), a=randn(N, 4), b=randn(N, 4))
def reward_model(self, a, b):
    return F.softplus(self.reward(b) - self.reward(a)).mean()

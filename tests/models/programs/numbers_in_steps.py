"""Numbers that leave their range or their type: half precision, integer division, double precision, quantizers."""
import torch
from program import Buffer, N, flags, labels, mlp, randn, step
from torch.nn import functional as F


@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N), hidden=flags(N, 5))
def half_mask_times_a_billion(self, x, y, hidden):
    z = self.net(x).half() + hidden.half() * torch.tensor(-1e9).half()  # fault: overflow-in-cast undefined-value
    return F.cross_entropy(z.float(), y)


@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N))
def half_loss_scale(self, x, y):
    scale = torch.full((), 65536.0)
    return F.cross_entropy(self.net(x), y).half() * scale.half()  # fault: overflow-in-cast


@step(net=mlp(4, 400), x=randn(N, 4), y=randn(N, 400))
def half_norm(self, x, y):
    d = (self.net(x) - y).half()
    return torch.sqrt((d**2).sum(1)).mean()  # fault: low-precision-accumulation


@step(net=mlp(4, 2), x=randn(400, 4), y=randn(400, 2), fixed=True)
def half_sum_of_batch(self, x, y):
    d = (self.net(x) - y).half()
    return d.pow(2).sum() / 400  # fault: low-precision-accumulation


@step(net=mlp(4, 1), x=randn(N, 4), y=randn(N, 1), warm=Buffer(torch.tensor(5)))
def integer_warm_up(self, x, y):
    share = self.warm // 100
    return F.mse_loss(self.net(x), y) * share  # fault: loss-detached-from-parameters integer-operands-in-loss


@step(net=mlp(4, 1), x=randn(N, 4), y=randn(N, 1), period=Buffer(torch.tensor(0)), epoch=labels(9, 1), fails=True)
def integer_division_by_zero(self, x, y, epoch):
    share = (epoch // self.period).float()  # fault: invalid-domain
    return (F.mse_loss(self.net(x), y) * share).sum()


@step(net=mlp(4, 2), x=randn(N, 4), y=randn(N, 2), scale=Buffer(torch.tensor([1.0, 2.0], dtype=torch.float64)))
def double_scale(self, x, y):
    return (((self.net(x) - y) / self.scale) ** 2).mean()  # fault: accidental-float64 mixed-operand-dtypes


@step(net=mlp(4, 1), x=randn(N, 4), y=randn(N, 1))
def fake_quantised_scale_zero(self, x, y):
    h = torch.fake_quantize_per_tensor_affine(self.net(x), 0.0, 0, -128, 127)  # fault: invalid-domain
    return F.mse_loss(h, y)


# Correct.
@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N), hidden=flags(N, 5))
def half_mask_within_range(self, x, y, hidden):
    z = self.net(x).half().masked_fill(hidden > 0, -6e4)
    return F.cross_entropy(z.float(), y)


@step(net=mlp(4, 1), x=randn(N, 4), y=randn(N, 1))
def fake_quantised(self, x, y):
    h = torch.fake_quantize_per_tensor_affine(self.net(x), 0.1, 0, -128, 127)
    return F.mse_loss(h, y)


@step(net=mlp(4, 400), x=randn(N, 4), y=randn(N, 400))
def half_mean_in_single(self, x, y):
    d = (self.net(x).half() - y.half()).float()
    return d.square().sum(1).mean()


@step(net=mlp(4, 1), x=randn(N, 4), y=randn(N, 1))
def autocast_bfloat(self, x, y):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        p = self.net(x)
    return F.mse_loss(p.float(), y)


@step(net=mlp(4, 5), x=randn(N, 4), y=labels(5, N), count=Buffer(torch.tensor([3, 1, 4, 1, 5])))
def inverse_counts(self, x, y):
    weight = self.count.sum() / (5 * self.count)
    return F.cross_entropy(self.net(x), y, weight=weight)


@step(net=mlp(4, 1), x=randn(N, 4), y=randn(N, 1), accumulate=Buffer(torch.tensor(4)))
def gradient_accumulation(self, x, y):
    return F.mse_loss(self.net(x), y) / self.accumulate

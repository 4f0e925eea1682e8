"""Exports training steps, with and without a mistake, through both exporters of PyTorch; `steps.json` is the index.

  export_steps.py [OUTPUT_FOLDER]        needs torch 2.13.0, onnx, onnxscript

A step computes a loss of `x` and `y` and runs in eager mode. `rules` are those of which one has to be reported; none for
a step that is correct, however odd it looks. Exporters: dynamo with an open batch, torchscript with a fixed one; a step
that one of them refuses is left out there. The exporter's metadata is dropped, so that the bytes are few and nothing but
the graph tells what it computes.
"""
import contextlib
import io
import json
import logging
import os
import sys
import warnings

import onnx
import torch
from torch import nn
from torch.nn import functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
N = 6

BROADCAST = ["silent-broadcast-in-loss"]
SOFTMAX = ["softmax-over-batch-axis"]
REDUCTION = ["reduction-over-batch-axis"]
DETACHED = ["loss-detached-from-parameters"]
PROBABILITIES = ["probabilities-into-logit-loss"]
LOGITS = ["logits-into-probability-loss"]


class Step(nn.Module):
    def __init__(self, width, loss):
        super().__init__()
        self.layer = nn.Linear(4, width)
        self.other = nn.Linear(4, width)
        self.loss = loss

    def forward(self, x, y):
        if self.loss.__code__.co_argcount == 3:
            return self.loss(self.layer(x), self.other(x), y)
        return self.loss(self.layer(x), y)


def focal(p, y):
    entropy = F.cross_entropy(p, y, reduction="none")
    return ((1 - torch.exp(-entropy)) ** 2 * entropy).mean()


def smoothed(p, y):
    logs = p.log_softmax(1)
    picked = -logs.gather(1, y.unsqueeze(1)).squeeze(1)
    return (0.9 * picked - 0.1 * logs.mean(1)).mean()


def dice(p, y):
    p = p.sigmoid()
    return 1 - (2 * (p * y).sum() + 1) / (p.sum() + y.sum() + 1)


def dice_by_class(p, y):
    p = p.softmax(1)
    return (1 - (2 * (p * y).sum(0) + 1) / (p.sum(0) + y.sum(0) + 1)).mean()


def barlow(a, b, y):
    a, b = (a - a.mean(0)) / a.std(0), (b - b.mean(0)) / b.std(0)
    c = a.T @ b / N
    return ((c - torch.eye(5)) ** 2).sum() + 0 * y.mean()


def vicreg(a, b, y):
    spread = F.relu(1 - torch.sqrt(a.var(0) + 1e-4)).mean()
    return F.mse_loss(a, b) + spread + 0 * y.mean()


def clip_loss(a, b, y):
    scores = F.normalize(a, dim=1) @ F.normalize(b, dim=1).T
    return (-scores.log_softmax(0).diagonal().mean() - scores.log_softmax(1).diagonal().mean()) / 2 + 0 * y.mean()


def triplet(a, b, y):
    return F.relu((a - b).pow(2).sum(1) - (a - y).pow(2).sum(1) + 1).mean()


def ppo(p, y):
    ratio = torch.exp(p.squeeze(-1) - y[:, 0])
    return -torch.min(ratio * y[:, 1], ratio.clamp(0.8, 1.2) * y[:, 1]).mean()


def quantiles(p, y):
    levels = torch.tensor([0.1, 0.3, 0.5, 0.7, 0.9])
    error = y.unsqueeze(1) - p
    return torch.max(levels * error, (levels - 1) * error).mean()


def mixture(p, y):
    logs = -0.5 * (y.unsqueeze(1) - p) ** 2
    return -torch.logsumexp(logs, 1).mean()


def energy(a, b, y):
    u, v = a.squeeze(-1), b.squeeze(-1)
    return (u.unsqueeze(1) - v.unsqueeze(0)).abs().mean() - (u.unsqueeze(1) - u.unsqueeze(0)).abs().mean() / 2 + 0 * y.mean()


def uncertain(p, y):
    mean, log_var = p[:, 0], p[:, 1]
    return (0.5 * log_var + 0.5 * (y - mean) ** 2 / log_var.exp()).mean()


def straight_through(p, y):
    p = p.squeeze(-1)
    return F.mse_loss(p + (p.round() - p).detach(), y)


def masked(p, y):
    valid = (y[:, 1] > 0.5).float()
    return ((p.squeeze(-1) - y[:, 0]) ** 2 * valid).sum() / valid.sum().clamp(min=1)


def pearson(p, y):
    a, b = p - p.mean(0), y - y.mean(0)
    return (1 - (a * b).sum(0) / (a.norm(dim=0) * b.norm(dim=0) + 1e-8)).mean()


def rank_net(p, y):
    s = p.squeeze(-1)
    return F.softplus(-(s.unsqueeze(1) - s.unsqueeze(0)) * torch.sign(y.unsqueeze(1) - y.unsqueeze(0))).mean()


def hand_softmax(p, y, dim):
    e = torch.exp(p - p.amax(dim, keepdim=True))
    return -(e / e.sum(dim, keepdim=True)).log().gather(1, y.unsqueeze(1)).mean()


X, Y, Y1 = torch.randn(N, 4), torch.randn(N), torch.randn(N, 1)
Y2, Y5, B, B5 = torch.rand(N, 2), torch.randn(N, 5), torch.rand(N), torch.rand(N, 5)
P5 = torch.softmax(torch.randn(N, 5), 1)
L = torch.tensor([0, 1, 2, 3, 4, 1])
S = torch.sign(torch.randn(N))
C = torch.randint(0, 9, (N,)).float()

# name, width of the layer, loss, y, rules
STEPS = [
    ("broadcast_mse", 1, lambda p, y: F.mse_loss(p, y), Y, BROADCAST),
    ("broadcast_mse_sum", 1, lambda p, y: F.mse_loss(p, y, reduction="sum"), Y, BROADCAST),
    ("broadcast_rmse", 1, lambda p, y: torch.sqrt(((p - y) ** 2).mean()), Y, BROADCAST),
    ("broadcast_rmsle", 1, lambda p, y: ((p.relu() + 1).log() - (y.abs() + 1).log()).pow(2).mean().sqrt(), Y, BROADCAST),
    ("broadcast_smooth_l1", 1, lambda p, y: F.smooth_l1_loss(p, y), Y, BROADCAST),
    ("broadcast_log_cosh", 1, lambda p, y: torch.log(torch.cosh(p - y)).mean(), Y, BROADCAST),
    ("broadcast_norm_1", 1, lambda p, y: torch.norm(p - y, p=1) / N, Y, BROADCAST),
    ("broadcast_product", 1, lambda p, y: ((p - y) * (p - y)).sum() / N, Y, BROADCAST),
    ("broadcast_percentage", 1, lambda p, y: ((p - y).abs() / (y.abs() + 1e-8)).mean(), Y, BROADCAST),
    ("broadcast_hinge", 1, lambda p, y: F.relu(1 - p * y).mean(), S, BROADCAST),
    ("broadcast_soft_margin", 1, lambda p, y: F.softplus(-p * y).mean(), S, BROADCAST),
    ("broadcast_poisson", 1, lambda p, y: (torch.exp(p) - y * p).mean(), C, BROADCAST),
    ("broadcast_poisson_nll", 1, lambda p, y: F.poisson_nll_loss(p, y), C, BROADCAST),
    ("broadcast_bce_logits_by_hand", 1, lambda p, y: (p.clamp(min=0) - p * y + torch.log1p(torch.exp(-p.abs()))).mean(), B, BROADCAST),
    ("broadcast_pinball", 1, lambda p, y: torch.max(0.9 * (y - p), -0.1 * (y - p)).mean(), Y, BROADCAST),
    ("broadcast_weights", 1, lambda p, y: ((p.squeeze(-1) - y[:, 0]) ** 2 * y[:, 1:2]).mean(), Y2, BROADCAST),
    ("broadcast_mask", 1, lambda p, y: torch.where(y[:, 1:2] > 0.5, (p.squeeze(-1) - y[:, 0]).abs(), torch.zeros(())).mean(), Y2, BROADCAST),
    ("broadcast_lengths", 1, lambda p, y: ((p.squeeze(-1) - y[:, 0]).pow(2) / (y[:, 1:2] + 1)).sum(), Y2, BROADCAST),
    ("broadcast_two_losses", 1, lambda p, y: (F.mse_loss(p.squeeze(-1), y[:, 0], reduction="none") + (p - y[:, 1:2]).abs()).mean(), Y2, BROADCAST),
    ("broadcast_target_unsqueezed", 1, lambda p, y: ((p.squeeze(-1) - y.unsqueeze(-1)) ** 2).mean(), Y, BROADCAST),
    ("broadcast_one_output", 1, lambda p, y: F.mse_loss(p, y), Y5, BROADCAST),
    ("broadcast_one_label", 5, lambda p, y: F.mse_loss(p.softmax(1), y), Y1, BROADCAST),
    ("broadcast_scaled_sum", 1, lambda p, y: 0.5 * ((y - p) ** 2).sum() / N + 0.01 * (p**2).mean(), Y, BROADCAST),
    ("softmax_gather", 5, lambda p, y: -p.log_softmax(0).gather(1, y.unsqueeze(1)).mean(), L, SOFTMAX),
    ("softmax_nll", 5, lambda p, y: F.nll_loss(F.log_softmax(p, 0), y), L, SOFTMAX),
    ("softmax_soft_targets", 5, lambda p, y: -(y * F.log_softmax(p, 0)).sum(1).mean(), P5, SOFTMAX),
    ("softmax_kl", 5, lambda p, y: F.kl_div(F.log_softmax(p, 0), y, reduction="batchmean"), P5, SOFTMAX),
    ("softmax_mse", 5, lambda p, y: F.mse_loss(p.softmax(0), y), P5, SOFTMAX),
    ("softmax_by_hand", 5, lambda p, y: hand_softmax(p, y, 0), L, SOFTMAX),
    ("softmax_one_class", 1, lambda p, y: F.mse_loss(p.softmax(1), y), Y1, SOFTMAX),
    ("reduction_cosine", 5, lambda p, y: 1 - F.cosine_similarity(p, y, dim=0).mean(), Y5, REDUCTION),
    ("reduction_cosine_by_hand", 5, lambda p, y: 1 - ((p * y).sum(0) / (p.norm(dim=0) * y.norm(dim=0))).mean(), Y5, REDUCTION),
    ("reduction_mean_prediction", 5, lambda p, y: F.mse_loss(p.mean(0), y), Y5, REDUCTION + BROADCAST),
    ("reduction_loss_by_class", 5, lambda p, y: ((p - y) ** 2).mean(0), Y5, REDUCTION),
    ("reduction_normalised", 5, lambda p, y: F.mse_loss(F.normalize(p, dim=0), y), Y5, REDUCTION),
    ("detached_argmax", 5, lambda p, y: F.mse_loss(p.argmax(1).float(), y), Y, DETACHED),
    ("detached_round", 1, lambda p, y: F.l1_loss(p.squeeze(-1).round(), y), Y, DETACHED),
    ("detached_threshold", 1, lambda p, y: F.mse_loss((p.squeeze(-1) > 0).float(), y), Y, DETACHED),
    ("detached_floor", 1, lambda p, y: ((p.squeeze(-1).floor() - y) ** 2).mean(), Y, DETACHED),
    ("detached_sign", 1, lambda p, y: F.relu(1 - torch.sign(p.squeeze(-1)) * y).mean(), S, DETACHED),
    ("detached_long", 1, lambda p, y: F.mse_loss(p.squeeze(-1).long().float(), y), Y, DETACHED),
    ("probabilities_ce", 5, lambda p, y: F.cross_entropy(p.softmax(-1), y), L, PROBABILITIES),
    ("probabilities_ce_sigmoid", 5, lambda p, y: F.cross_entropy(torch.sigmoid(p), y), L, PROBABILITIES),
    ("probabilities_ce_clamped", 5, lambda p, y: F.cross_entropy(p.softmax(1).clamp(1e-7, 1), y), L, PROBABILITIES),
    ("probabilities_focal", 5, lambda p, y: focal(p.softmax(1), y), L, PROBABILITIES),
    ("probabilities_bce_logits", 5, lambda p, y: F.binary_cross_entropy_with_logits(p.sigmoid(), y), B5, PROBABILITIES),
    ("probabilities_log_softmax", 5, lambda p, y: -p.softmax(1).log_softmax(1).gather(1, y.unsqueeze(1)).mean(), L, PROBABILITIES),
    ("probabilities_nll", 5, lambda p, y: F.nll_loss(p.softmax(1), y), L, PROBABILITIES + LOGITS),
    ("logits_nll", 5, lambda p, y: F.nll_loss(p, y), L, LOGITS),
    ("logits_kl", 5, lambda p, y: F.kl_div(p, y, reduction="batchmean"), P5, LOGITS),
    ("logits_bce", 5, lambda p, y: -(y * p.log() + (1 - y) * (1 - p).log()).mean(), B5, LOGITS),
    # Correct, however odd.
    ("ok_mse", 1, lambda p, y: F.mse_loss(p, y), Y1, []),
    ("ok_mse_squeezed", 1, lambda p, y: F.mse_loss(p.squeeze(-1), y), Y, []),
    ("ok_huber", 1, lambda p, y: F.smooth_l1_loss(p.squeeze(-1), y), Y, []),
    ("ok_rmse_by_column", 5, lambda p, y: torch.sqrt(((p - y) ** 2).mean(0)).mean(), Y5, []),
    ("ok_ce", 5, lambda p, y: F.cross_entropy(p, y), L, []),
    ("ok_focal", 5, focal, L, []),
    ("ok_smoothed", 5, smoothed, L, []),
    ("ok_dice", 5, dice, B5, []),
    ("ok_dice_by_class", 5, dice_by_class, P5, []),
    ("ok_barlow_twins", 5, barlow, Y, []),
    ("ok_vicreg", 5, vicreg, Y, []),
    ("ok_clip", 5, clip_loss, Y, []),
    ("ok_triplet", 5, triplet, Y5, []),
    ("ok_ppo", 1, ppo, Y2, []),
    ("ok_quantiles", 5, quantiles, Y, []),
    ("ok_mixture", 5, mixture, Y, []),
    ("ok_energy_distance", 1, energy, Y, []),
    ("ok_uncertainty", 2, uncertain, Y, []),
    ("ok_straight_through", 1, straight_through, Y, []),
    ("ok_masked", 1, masked, Y2, []),
    ("ok_pearson", 5, pearson, Y5, []),
    ("ok_rank_net", 1, rank_net, Y, []),
    ("ok_kernel", 1, lambda p, y: torch.exp(-((p - y) ** 2)).mean(), Y, []),
    ("ok_ensemble", 5, lambda p, y: F.mse_loss(p, y.unsqueeze(1).expand_as(p)), Y, []),
    ("ok_distillation", 5, lambda a, b, y: F.kl_div(F.log_softmax(a / 2, -1), F.softmax(b / 2, -1), reduction="batchmean") * 4 + F.cross_entropy(a, y), L, []),
    ("ok_entropy_bonus", 5, lambda p, y: F.cross_entropy(p, y) + 0.1 * (p.softmax(1) * p.log_softmax(1)).sum(1).mean(), L, []),
    ("ok_policy_gradient", 5, lambda p, y: -(p.log_softmax(1)[:, 0] * y).mean(), Y, []),
    ("ok_gan_discriminator", 1, lambda a, b, y: ((a - 1) ** 2).mean() + (b**2).mean() + 0 * y.mean(), Y, []),
    ("ok_wasserstein", 1, lambda a, b, y: a.mean() - b.mean() + 10 * ((a - b).norm() - 1) ** 2 + 0 * y.mean(), Y, []),
    ("ok_feature_matching", 5, lambda a, b, y: F.mse_loss(a.mean(0), b.mean(0)) + 0 * y.mean(), Y, []),
    ("ok_multi_task", 5, lambda p, y: F.mse_loss(p[:, 0], y[:, 0]) + F.l1_loss(p[:, 1:], y[:, 1:]), Y5, []),
    ("ok_listwise", 1, lambda p, y: -(y.softmax(0) * p.squeeze(-1).log_softmax(0)).sum(), Y, []),
    ("ok_attention_pool", 5, lambda p, y: F.cross_entropy(p.softmax(0) * p, y), L, []),
    ("ok_row_weights", 5, lambda p, y: ((p - y) ** 2 * y[:, :1].abs()).mean(), Y5, []),
    ("ok_class_weights", 5, lambda p, y: F.cross_entropy(p, y, weight=torch.arange(1.0, 6.0)), L, []),
    ("ok_soft_bins", 5, lambda p, y: F.mse_loss((p.softmax(1) * torch.arange(5.0)).sum(1), y), Y, []),
    ("ok_pairs_of_rows", 5, lambda p, y: ((p.unsqueeze(1) - y.unsqueeze(0)) ** 2).sum(-1).mean(), Y5, []),
    ("ok_centre_loss", 5, lambda p, y: ((p - p.mean(0, keepdim=True)) ** 2).mean() + 0 * y.mean(), Y, []),
    ("ok_cosine", 5, lambda p, y: 1 - F.cosine_similarity(p, y, dim=1).mean(), Y5, []),
    ("ok_float_target", 1, lambda p, y: F.mse_loss(p.squeeze(-1), y.float()), L, []),
    ("ok_bce_logits", 5, lambda p, y: F.binary_cross_entropy_with_logits(p, y), B5, []),
    ("ok_bce_on_softmax", 5, lambda p, y: -(y * p.softmax(1).log() + (1 - y) * (1 - p.softmax(1)).log()).mean(), P5, []),
]

# The exporter makes one SoftmaxCrossEntropyLoss of log_softmax and nll_loss, whatever the axis was: nothing is left of it.
LOST = {("softmax_nll", "torchscript")}


def export(step, y, path, dynamo):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        if dynamo:
            batch = torch.export.Dim("batch", min=2, max=4096)
            shapes = {"x": {0: batch}, "y": {0: batch}}
            torch.onnx.export(step, (X, y), path, dynamo=True, external_data=False, dynamic_shapes=shapes)
        else:
            torch.onnx.export(step, (X, y), path, dynamo=False, input_names=["x", "y"], output_names=["loss"])
    model = onnx.load(path)
    del model.metadata_props[:]
    for part in (*model.graph.node, *model.graph.input, *model.graph.output, *model.graph.initializer, *model.graph.value_info):
        del part.metadata_props[:]
    for node in model.graph.node:
        node.doc_string = ""
    onnx.save(model, path)


def main() -> None:
    folder = sys.argv[1] if len(sys.argv) > 1 else HERE
    os.makedirs(os.path.join(folder, "steps"), exist_ok=True)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    models, unsupported = [], []
    for name, width, loss, y, rules in STEPS:
        step = Step(width, loss).eval()
        step(X, y)
        for exporter in ("dynamo", "torchscript"):
            file = f"steps/{name}_{exporter}.onnx"
            try:
                export(step, y, os.path.join(folder, file), exporter == "dynamo")
            except Exception as error:
                unsupported.append({"step": name, "exporter": exporter, "error": type(error).__name__})
                if os.path.exists(os.path.join(folder, file)):
                    os.remove(os.path.join(folder, file))
                continue
            models.append({"file": file, "step": name, "exporter": exporter, "rules": [] if (name, exporter) in LOST else rules})
    with open(os.path.join(folder, "steps.json"), "w") as index:
        json.dump({"models": models, "unsupported": unsupported}, index, indent=1)
        index.write("\n")
    print(len(models), "models,", len(unsupported), "not exported")


if __name__ == "__main__":
    main()

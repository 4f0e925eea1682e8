#include "passes/losses/loss_sites.h"

#include <array>
#include <cstddef>

namespace tensorlint::losses {
namespace {

struct NamedLoss {
  std::string_view name;
  LossKind kind;
};

/// PyTorch's operators, as exporters name them in metadata. Longer names first: one may begin another.
constexpr std::array kAtenLosses{
    NamedLoss{"aten.mse_loss", LossKind::kMse},
    NamedLoss{"aten.l1_loss", LossKind::kL1},
    NamedLoss{"aten.smooth_l1_loss", LossKind::kHuber},
    NamedLoss{"aten.huber_loss", LossKind::kHuber},
    NamedLoss{"aten.binary_cross_entropy_with_logits", LossKind::kBinaryCrossEntropyWithLogits},
    NamedLoss{"aten.binary_cross_entropy", LossKind::kBinaryCrossEntropy},
    NamedLoss{"aten.kl_div", LossKind::kKlDivergence},
    NamedLoss{"aten.nll_loss", LossKind::kNegativeLogLikelihood},
    NamedLoss{"aten.cross_entropy_loss", LossKind::kCrossEntropy},
};

constexpr std::string_view kLossModules = "torch.nn.modules.loss.";
constexpr std::array kModuleLosses{
    NamedLoss{"MSELoss", LossKind::kMse},
    NamedLoss{"L1Loss", LossKind::kL1},
    NamedLoss{"SmoothL1Loss", LossKind::kHuber},
    NamedLoss{"HuberLoss", LossKind::kHuber},
    NamedLoss{"BCELoss", LossKind::kBinaryCrossEntropy},
    NamedLoss{"BCEWithLogitsLoss", LossKind::kBinaryCrossEntropyWithLogits},
    NamedLoss{"KLDivLoss", LossKind::kKlDivergence},
    NamedLoss{"NLLLoss", LossKind::kNegativeLogLikelihood},
    NamedLoss{"CrossEntropyLoss", LossKind::kCrossEntropy},
};

template <std::size_t kSize>
std::optional<LossKind> find_kind(const std::array<NamedLoss, kSize>& losses, std::string_view name) {
  for (const NamedLoss& loss : losses)
    if (loss.name == name) return loss.kind;
  return std::nullopt;
}

}  // namespace

std::optional<LossKind> loss_named(std::string_view metadata) {
  // What is innermost comes last; what modules around it are called may be long.
  constexpr std::size_t kMostLookedAt = 4096;
  if (metadata.size() > kMostLookedAt) metadata.remove_prefix(metadata.size() - kMostLookedAt);
  // Only the innermost operator counts, and the modules that are losses: one around them may be called anything.
  const std::size_t at = metadata.rfind("aten.");
  if (at == std::string_view::npos) return std::nullopt;
  for (const NamedLoss& loss : kAtenLosses)
    if (metadata.substr(at).starts_with(loss.name)) return loss.kind;
  const std::size_t module = metadata.rfind(kLossModules, at);
  if (module == std::string_view::npos) return std::nullopt;
  std::string_view name = metadata.substr(module + kLossModules.size());
  name = name.substr(0, name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"));
  return find_kind(kModuleLosses, name);
}

}  // namespace tensorlint::losses

#pragma once

#include <optional>
#include <string_view>

#include "passes/losses/loss_sites.h"

namespace tensorlint::losses {

/// The loss that one node of this operator is; nullopt for none.
std::optional<LossKind> loss_operator(std::string_view domain, std::string_view name);

}  // namespace tensorlint::losses

#pragma once

#include <optional>

#include "passes/losses/loss_sites.h"

namespace tensorlint::losses {

/// The loss that a call is by itself; nullopt where its operator is not a loss. Costs the same in every model.
std::optional<LossSite> loss_of_call(const dataflow::Analysis& analysis, NodeId call);

}  // namespace tensorlint::losses

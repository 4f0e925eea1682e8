#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph/model.h"
#include "ir/ops/loss_kind.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint::losses {

using ops::LossKind;

/// How a loss was recognised.
enum class LossEvidence : std::uint8_t {
  kOperator,
  kPattern,
  kMetadata,
  kFormula,  ///< by what its elements are, evaluated
};

/// A loss within a graph.
struct LossSite {
  LossKind kind;
  LossEvidence evidence;
  NodeId anchor = NodeId::kNone;  ///< the node at which prediction and target meet
  /// Operands of the loss; in a written-out loss the anchor may use what is computed from them. Where a pattern is
  /// symmetric, the one that parameters go into is the prediction.
  ValueId prediction = ValueId::kAbsent, target = ValueId::kAbsent;
  /// The same behind casts and stretching: what the program hands to the loss.
  ValueId prediction_source = ValueId::kAbsent, target_source = ValueId::kAbsent;
  std::vector<NodeId> nodes;  ///< sorted; `anchor` is one of them
  /// The output of the graph that sums it up, and the nodes between, from the output on; kAbsent where none is known
  /// to.
  ValueId output = ValueId::kAbsent;
  std::vector<NodeId> path{};
};

/// The loss that an exporter's metadata names (`aten.mse_loss.default`, or `torch.nn.modules.loss.HuberLoss`
/// around what it consists of, in `namespace` or `pkg.torch.onnx.class_hierarchy`).
std::optional<LossKind> loss_named(std::string_view metadata);

/// Losses of the main graph and its functions: operators, what exporters make of losses, and what metadata names.
/// Costs a walk over the nodes; metadata is read only where a pattern is in doubt.
std::vector<LossSite> find_losses(const dataflow::Analysis& analysis);

}  // namespace tensorlint::losses

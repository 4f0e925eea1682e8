#include "passes/losses/axis_mistakes.h"

#include <algorithm>

#include "passes/losses/axis_finders.h"

namespace tensorlint::losses {

std::vector<AxisMistake> find_axis_mistakes(const Expressions& expressions, AxisOrigins& origins,
                                            std::span<const ValueId> outputs) {
  const LossCone cone(expressions, origins, outputs);
  std::vector<AxisMistake> found;
  BatchMixing mixing(cone);
  BatchTotals totals(cone, mixing);
  RowTerms rows(cone, mixing);
  ProductTerms products(cone);
  SoftmaxUse softmax(cone);
  MisreadViews views(cone);
  CrossedAxes crossed(cone);
  SequenceAxes sequence(cone);
  FlattenedOrder order(cone);
  for (const NodeId node : cone.nodes()) {
    if (expressions.is_spent()) break;
    if (expressions.analysis().has_failed(node)) continue;
    auto mistake = mixing.at(node);
    if (!mistake) mistake = totals.at(node);
    if (!mistake) mistake = rows.at(node);
    if (!mistake) mistake = products.at(node);
    if (!mistake) mistake = softmax.at(node);
    if (!mistake) mistake = views.at(node);
    if (!mistake) mistake = crossed.at(node);
    if (!mistake) mistake = sequence.at(node);
    if (!mistake) mistake = order.at(node);
    // What has no known shape has no axes, and rules name the first.
    if (mistake && !mistake->axes.empty()) found.push_back(std::move(*mistake));
  }
  return found;
}

}  // namespace tensorlint::losses

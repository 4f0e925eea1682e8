#include "analyzer/rules/loss/positions_of_samples.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>

#include "analyzer/rules/loss/token_shift.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

/// Nodes of a graph, not samples: an edge is for two of them.
bool has_square_input(const dataflow::Analysis& analysis) {
  const DimPool& pool = analysis.facts().dims();
  for (const ValueId input : analysis.inputs(GraphId::kMain)) {
    const Fact& fact = analysis.fact(input);
    if (fact.kind != ValueKind::kTensor || !analysis.facts().is_ranked(fact.shape)) continue;
    const auto dims = analysis.facts().dims_of(fact.shape);
    if (dims.size() == 2 && pool.equal(dims[0], dims[1])) return true;
  }
  return false;
}

/// Where the number of samples is not known, they may be more than the table has rows.
bool is_cut_to(const Expressions& expressions, ValueId table, Dim samples) {
  const NodeId cut = expressions.producer(before_stretch(expressions, table));
  const ValueId end = expressions.operand(cut, 2);
  const Content* content = end == ValueId::kAbsent ? nullptr : expressions.analysis().content(end);
  return expressions.op(cut) == Opcode::kSlice && content != nullptr && content->integers.size() == 1 &&
         expressions.analysis().facts().dims().equal(content->integers[0], samples);
}

/// Elements outside of the file are not read; PyTorch's exporter writes what it computed a table from. Each table's
/// metadata, which may be most of a file, is read once.
class FoldedTables {
 public:
  explicit FoldedTables(const dataflow::Analysis& analysis) : analysis_(analysis) {
    const Provenance* provenance = analysis.model().provenance.get();
    is_any_ = provenance != nullptr && provenance->mentions(kKey);
  }

  bool is_of_steps(ValueId table) {
    if (!is_any_) return false;
    analysis_.meter().charge(32);
    const auto [known, is_new] = known_.try_emplace(table, false);
    if (is_new) known->second = read(table);
    return known->second;
  }

 private:
  static constexpr std::string_view kKey = "pkg.onnxscript.optimizer.folded_from";

  bool read(ValueId table) const {
    constexpr std::size_t kMostWritten = 4096;
    const Model& model = analysis_.model();
    const std::vector<MetadataEntry> entries = model.provenance->value_metadata(table);
    analysis_.meter().charge(256 + 16 * entries.size());
    for (const MetadataEntry& entry : entries) {
      analysis_.meter().charge(entry.value.size());
      if (entry.key == kKey && entry.value.size() <= kMostWritten)
        return entry.value.find("'arange") != std::string_view::npos || model.name_of(table).starts_with("slice_");
    }
    return false;
  }

  const dataflow::Analysis& analysis_;
  bool is_any_ = false;
  std::map<ValueId, bool> known_;
};

bool has_rows_that_differ(const Expressions& expressions, ValueId table, FoldedTables& folded) {
  constexpr std::size_t kMostNumbers = 65536;
  const auto dims = expressions.dims(table);
  const auto rows = dims.empty() ? std::nullopt : expressions.analysis().facts().dims().as_constant(dims.front());
  const auto numbers = constant_numbers(expressions.analysis(), table, kMostNumbers);
  if (!numbers) return folded.is_of_steps(table);
  if (!rows || *rows < 2 || numbers->size() % static_cast<std::size_t>(*rows) != 0) return false;
  const std::size_t width = numbers->size() / static_cast<std::size_t>(*rows);
  for (std::size_t i = 0; i < width; ++i)
    if ((*numbers)[i] != (*numbers)[width + i]) return true;
  return false;
}

/// Rows of a table from the first one on: cut off, looked up at 0, 1, 2, ..., or all of it.
bool has_rows_by_number(const Expressions& expressions, ValueId value, FoldedTables& folded) {
  value = before_stretch(expressions, value);
  if (is_constant(expressions, value)) return has_rows_that_differ(expressions, value, folded);
  const NodeId node = expressions.producer(value);
  const ValueId whole = expressions.operand(node, 0), index = expressions.operand(node, 1);
  if (whole == ValueId::kAbsent || index == ValueId::kAbsent ||
      !is_constant(expressions, before_stretch(expressions, whole)))
    return false;
  if (expressions.op(node) == Opcode::kSlice) return expressions.is_number(index, 0);
  if (expressions.op(node) != Opcode::kGather) return false;
  const ValueId places = before_stretch(expressions, index);
  const NodeId range = expressions.producer(places);
  if (expressions.op(range) == Opcode::kRange)
    return expressions.is_number(expressions.operand(range, 0), 0) &&
           expressions.is_number(expressions.operand(range, 2), 1);
  const auto numbers = constant_numbers(expressions, places);
  if (!numbers || numbers->size() < 2) return false;
  for (std::size_t i = 0; i < numbers->size(); ++i)
    if ((*numbers)[i] != static_cast<double>(i)) return false;
  return true;
}

/// A loss whose samples are those along axis 0 of the data: one label for each, as it is read. In a model whose first
/// axis is the time a label is for a sequence, or there is one at each step of each.
bool has_label_of_each(const ModelView& view, const Expressions& expressions, losses::AxisOrigins& origins,
                       ValueId data) {
  const dataflow::Analysis& analysis = view.analysis();
  const DimPool& pool = analysis.facts().dims();
  constexpr std::size_t kMostLosses = 8;
  std::size_t seen = 0;
  bool found = false;
  for (const losses::LossSite& loss : Walk(std::span(view.losses()), analysis.meter())) {
    if (++seen > kMostLosses) break;
    if (loss.target == ValueId::kAbsent || loss.prediction == ValueId::kAbsent) continue;
    const ValueId labels = before_views(expressions, loss.target);
    const auto dims = expressions.dims(labels), scores = expressions.dims(loss.prediction);
    if (!is_input(analysis, labels)) continue;
    const bool is_of_samples = dims.size() == 1 || (dims.size() == 2 && pool.is_constant(dims[1], 1));
    if (!is_of_samples || scores.empty() || scores.size() > 2) return false;
    found = found || (pool.equal(dims[0], expressions.dims(data)[0]) && pool.equal(scores[0], dims[0]) &&
                      origins.are_same(data, 0, loss.prediction, 0));
  }
  return found;
}

/// [samples, 1, width] meets [samples, places, width].
bool has_row_of_sample(const ModelView& view, const Expressions& expressions, losses::AxisOrigins& origins,
                       const NodeCall& call, ValueId table, ValueId data, FoldedTables& folded) {
  if (table == ValueId::kAbsent || data == ValueId::kAbsent) return false;
  const DimPool& pool = call.facts().dims();
  const auto rows = expressions.dims(table), dims = expressions.dims(data);
  if (dims.size() < 3 || rows.size() != dims.size() || pool.is_constant(dims[0], 1) ||
      !pool.equal(rows.back(), dims.back()) || pool.is_constant(dims.back(), 1) ||
      (!pool.equal(rows[0], dims[0]) && !is_cut_to(expressions, table, dims[0])))
    return false;
  for (std::size_t i = 1; i + 1 < dims.size(); ++i)
    if (!pool.is_constant(rows[i], 1) || pool.is_constant(dims[i], 1)) return false;
  if (!has_rows_by_number(expressions, table, folded)) return false;
  return origins.is_batch(data, 0) && has_label_of_each(view, expressions, origins, data);
}

}  // namespace

std::vector<PositionsOfSamples> find_positions_of_samples(const ModelView& view, Reporter& out) {
  constexpr std::size_t kMost = 16;
  std::vector<PositionsOfSamples> found;
  if (view.losses().empty() || has_square_input(view.analysis())) return found;
  losses::AxisOrigins& origins = out.shared<losses::LossAxes>().origins;
  FoldedTables folded(view.analysis());
  each_node(view, out, {Opcode::kAdd}, [&](const Expressions& expressions, const NodeCall& call) {
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const ValueId table = call.operand(side).value(), data = call.operand(1 - side).value();
      if (found.size() < kMost && has_row_of_sample(view, expressions, origins, call, table, data, folded))
        found.push_back({call.id(), table, data});
    }
  });
  return found;
}

}  // namespace tensorlint::rules

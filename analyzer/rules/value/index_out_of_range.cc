#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/reached_index.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

class IndexOutOfRange : public Rule {
 public:
  IndexOutOfRange()
      : Rule({"TL-V502", "index-out-of-range", "value", findings::Severity::kError,
              "an index outside the axis it indexes"}) {}

  Specificity match(const ViolationCase& violation) const override {
    return violation.kind() == ops::ConstraintKind::kIndexRange ? Specificity::kGeneric : Specificity::kNone;
  }

  bool wants(std::string_view, std::string_view, const ops::OpEntry* entry) const override {
    if (opcode_of(entry) == ops::Opcode::kOneHot) return true;
    return entry != nullptr && std::ranges::find(entry->roles(), ops::OperandRole::kIndex, &ops::OpEntry::Role::role) !=
                                   entry->roles().end();
  }

  /// What inference does not find: an index that some execution reaches, and elements of long constants.
  void check(const NodeCall& call, Reporter& out) const override {
    if (call.is(ops::Opcode::kOneHot)) {
      check_one_hot(call, out);
      return;
    }
    const OpSchema* schema = call.op().schema;
    // Without an axis the indices are tuples.
    if (schema != nullptr && schema->attribute("axis") == nullptr) check_tuples(call, out);
    if (schema == nullptr || schema->attribute("axis") == nullptr) return;
    const int index = ops::operand_with(*schema, *call.entry(), ops::OperandRole::kIndex);
    if (index < 0) return;
    const Operand data = call.operand(0), indices = call.operand(static_cast<std::size_t>(index));
    if (!data.present() || !indices.present() || data.taint().has(Aspect::kShape) ||
        indices.taint().has(Aspect::kValue))
      return;
    const Fact& fact = data.fact();
    if (fact.kind != ValueKind::kTensor || fact.shape == ShapeId::kUnranked || call.analysis().has_failed(call.id()))
      return;
    const auto dims = call.facts().dims_of(fact.shape);
    const Attribute* attribute = call.attribute("axis");
    const auto rank = static_cast<std::int64_t>(dims.size());
    std::int64_t axis = attribute != nullptr ? attribute->i : 0;
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return;
    const auto extent = call.facts().dims().as_constant(dims[static_cast<std::size_t>(axis)]);
    if (!extent) return;
    check_axis(call, data, indices, axis, *extent, out);
  }

 private:
  /// Of GatherND and ScatterND: one index for each axis from the first on, along the last axis of the indices.
  static void check_tuples(const NodeCall& call, Reporter& out) {
    const Attribute* batch = call.attribute("batch_dims");
    const Operand data = call.operand(0), indices = call.operand(1);
    if (!data.present() || !indices.present() || (batch != nullptr && batch->i != 0) || call.node().result_count != 1 ||
        data.taint().has(Aspect::kShape) || indices.taint().has(Aspect::kValue) ||
        call.analysis().has_failed(call.id()) || !indices.fact().dtypes.proves(DTypeSet::integers()))
      return;
    const auto extents = call.facts().dims_of(data.fact().shape), tuples = call.facts().dims_of(indices.fact().shape);
    if (extents.empty() || tuples.empty()) return;
    std::vector<ValueId> each{indices.value()};
    const NodeId producer = call.model().value(indices.value()).producer;
    if (producer != NodeId::kNone && NodeCall(call.analysis(), producer).is(ops::Opcode::kConcat)) {
      const auto parts = call.analysis().operands(producer).read();
      each.assign(parts.begin(), parts.end());
    }
    const auto count = call.facts().dims().as_constant(tuples.back());
    if (count != static_cast<std::int64_t>(each.size()) || each.size() > extents.size()) return;
    const auto is_one_wide = [&](ValueId part) {
      const auto dims = call.facts().dims_of(call.analysis().fact(part).shape);
      return !dims.empty() && call.facts().dims().is_constant(dims.back(), 1);
    };
    if (each.size() > 1 && !std::ranges::all_of(each, is_one_wide)) return;
    for (std::size_t axis = 0; axis < each.size(); ++axis) {
      const auto extent = call.facts().dims().as_constant(extents[axis]);
      if (extent &&
          check_axis(call, data, Operand(call.analysis(), each[axis]), static_cast<std::int64_t>(axis), *extent, out))
        return;
    }
  }

  static bool check_axis(const NodeCall& call, const Operand& data, const Operand& indices, std::int64_t axis,
                         std::int64_t extent, Reporter& out) {
    const auto found = dataflow::index_outside(call.analysis(), indices.value(), -extent, extent);
    if (!found)
      return check_bytes(call, data, indices, axis, extent, out) || check_unknown(call, data, indices, extent, out) ||
             check_minus_one(call, data, indices, axis, extent, out);
    FindingBuilder finding =
        out.report(call.id(), fmt::format("index {} in {} is outside axis {} of {}, which has extent {}", found->index,
                                          indices.name(), axis, data.name(), extent));
    explain_index(finding, indices, *found);
    finding.origin(data, Aspect::kShape);
    return true;
  }

  /// Bytes that are counted from a number on, after some special ones, in a table with a row for each byte.
  static bool check_bytes(const NodeCall& call, const Operand& data, const Operand& indices, std::int64_t axis,
                          std::int64_t extent, Reporter& out) {
    if (one_float_outputs(call.analysis()).empty()) return false;
    const losses::Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    const NodeId sum = expressions.producer(before_moves(expressions, indices.value()));
    const auto shifted = with_number(expressions, sum);
    if (expressions.op(sum) != ops::Opcode::kAdd || !shifted || shifted->number < 1) return false;
    const ValueId bytes = before_moves(expressions, shifted->value);
    const Fact& fact = call.analysis().fact(bytes);
    constexpr std::int64_t kBytes = 256;
    if (!is_input(call.analysis(), bytes) || fact.dtypes != DTypeSet(DType::kUint8) ||
        !(fact.range == range_of(fact.dtypes)) || extent < kBytes ||
        static_cast<double>(extent) >= kBytes + shifted->number)
      return false;
    out.report(findings::Severity::kWarning, call.id(),
               fmt::format("{} is up to {:.0f}, and axis {} of {} has extent {}", indices.name(),
                           kBytes - 1 + shifted->number, axis, data.name(), extent))
        .certainty(ops::Certainty::kMay,
                   fmt::format("{} has 255 among its elements", Operand(call.analysis(), bytes).name()))
        .note_at(sum, "counted from here on")
        .fix(fmt::format("give the table {:.0f} rows", kBytes + shifted->number));
    return true;
  }

  /// -1 for a label that is not known picks the probability of the last class.
  static bool check_unknown(const NodeCall& call, const Operand& data, const Operand& indices, std::int64_t extent,
                            Reporter& out) {
    if (extent < 2 || one_float_outputs(call.analysis()).empty() || is_masked(call)) return false;
    const losses::Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    const auto softmax = expressions.normalised(expressions.source(data.value()));
    const NodeId choice = expressions.producer(before_moves(expressions, indices.value()));
    if (!softmax || expressions.op(choice) != ops::Opcode::kWhere) return false;
    const auto is_minus_one = [&](std::size_t side) {
      return expressions.number(expressions.operand(choice, side)) == -1.0;
    };
    if (is_minus_one(1) == is_minus_one(2)) return false;
    out.report(findings::Severity::kWarning, call.id(),
               fmt::format("index -1 in {} picks the last one of {} classes of {}, and it goes into the loss",
                           indices.name(), extent, data.name()))
        .certainty(ops::Certainty::kMay, fmt::format("{} has -1 among its elements", indices.name()))
        .note_at(choice, "-1 is put in here")
        .fix("leave these elements out with a mask, or use a loss with ignore_index");
    return true;
  }

  /// Numbers from 0 to as many as there are rows, less 1: nothing fails, but 0 gets the row of the last one.
  static bool check_minus_one(const NodeCall& call, const Operand& data, const Operand& indices, std::int64_t axis,
                              std::int64_t extent, Reporter& out) {
    const Range& range = indices.fact().range;
    const Model& model = call.model();
    if (extent < 3 || range.lo != -1 || range.hi != static_cast<double>(extent - 1) ||
        model.value(data.value()).initializer == nullptr || one_float_outputs(call.analysis()).empty())
      return false;
    ValueId value = indices.value();
    constexpr int kMaxMoves = 8;
    for (int step = 0; step < kMaxMoves; ++step) {
      const NodeId node = model.value(value).producer;
      if (node == NodeId::kNone) return false;
      const NodeCall made(call.analysis(), node);
      if (made.is(ops::Opcode::kSub) || made.is(ops::Opcode::kAdd)) {
        if (is_masked(call)) return false;
        out.report(findings::Severity::kWarning, call.id(),
                   fmt::format("index -1 in {} is the last row of axis {} of {}, which index {} takes as well",
                               indices.name(), axis, data.name(), extent - 1))
            .certainty(ops::Certainty::kMay, fmt::format("{} has -1 among its elements", indices.name()))
            .note_at(node, "0 becomes -1 here")
            .fix("give what has no index a row of its own, or leave it out with a mask");
        return true;
      }
      if (!moves_elements(opcode_of(made.entry())) && !made.is(ops::Opcode::kCast)) return false;
      value = made.operand(0).value();
    }
    return false;
  }

  /// What is looked up is chosen from or multiplied, so that some of it may not count.
  static bool is_masked(const NodeCall& call) {
    ValueId value = call.result();
    constexpr int kMaxMoves = 4;
    for (int step = 0; step < kMaxMoves && value != ValueId::kAbsent; ++step) {
      ValueId next = ValueId::kAbsent;
      for (const NodeId user : call.analysis().users(value)) {
        const NodeCall use(call.analysis(), user);
        if (use.is(ops::Opcode::kMul) || use.is(ops::Opcode::kWhere) || use.is(ops::Opcode::kMatMul)) return true;
        if (moves_elements(opcode_of(use.entry()))) next = use.result();
      }
      value = next;
    }
    return false;
  }

  /// Nothing fails: the row of such an index is all zeros, and its sample is lost.
  static void check_one_hot(const NodeCall& call, Reporter& out) {
    const Operand indices = call.operand(0), depth = call.operand(1);
    if (!indices.present() || !depth.present() || indices.taint().has(Aspect::kValue) ||
        depth.taint().has(Aspect::kValue))
      return;
    const Content* content = call.analysis().content(depth.value());
    if (content == nullptr || content->integers.size() != 1) return;
    const auto classes = call.facts().dims().as_constant(content->integers[0]);
    if (!classes || *classes < 1) return;
    const auto found = index_outside(call.analysis(), indices.value(), -*classes, *classes);
    // A bound that is the depth itself is what programs write for "no class".
    if (!found || found->certainty != ops::Certainty::kMust) return;
    out.report(findings::Severity::kWarning, call.id(),
               fmt::format("{} makes a row of zeros of index {} in {}: its depth is {}", call.op_name(), found->index,
                           indices.name(), *classes))
        .origin(indices, Aspect::kValue)
        .fix("make the depth larger, or the indices smaller");
  }
};

const RegisterRule<IndexOutOfRange> kRegisterIndexOutOfRange;

}  // namespace
}  // namespace tensorlint::rules

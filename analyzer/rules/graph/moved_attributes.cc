#include "analyzer/rules/graph/moved_attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/letters.h"
#include "ir/graph/new_nodes.h"

namespace tensorlint::rules {
namespace {

constexpr std::uint64_t kStepsOfName = 16, kStepsOfOperand = 16, kStepsOfVersion = 24;
constexpr int kConstantTakesNumbers = 12;  // value_int, value_ints, value_float of Constant came with opset 12

/// `K` is what `k` was, `constant_value` what `value` was.
bool continues(std::string_view operand, std::string_view attribute) {
  const std::string name = lower_case(operand), before = lower_case(attribute);
  return name == before || name.ends_with("_" + before);
}

std::optional<std::uint32_t> operand_for(const OpSchema& schema, std::string_view attribute) {
  for (std::size_t i = 0; i < schema.inputs.size(); ++i)
    if (continues(schema.inputs[i].name, attribute)) return static_cast<std::uint32_t>(i);
  return std::nullopt;
}

/// The opset from which on the operator takes the attribute as an operand; 0 where no older version has the attribute.
int moved_since(const OpSchema& schema, std::string_view attribute) {
  bool was_attribute = false;
  for (int opset = 1; opset <= schema.since_version; ++opset) {
    const OpSchema* version = find_schema(schema.domain, schema.name, opset);
    if (version == nullptr || version->since_version != opset) continue;
    if (version->attribute(attribute) != nullptr) was_attribute = true;
    if (was_attribute && version->attribute(attribute) == nullptr && operand_for(*version, attribute)) return opset;
  }
  return 0;
}

/// The nodes and constants that make one operand of an attribute.
class OperandMaker {
 public:
  OperandMaker(const NodeCall& call, std::vector<GraphEdit>& edits) : call_(call), edits_(edits) {}

  /// False where the attribute has no constant of its own.
  bool make(const MovedAttribute& moved) {
    const Attribute& attribute = *moved.attribute;
    const std::string_view node = call_.model().name_of(call_.result());
    name_ = unused_name(call_.model(), fmt::format("{}_{}", node, attribute.name));
    switch (attribute.kind) {
      case AttributeKind::kInts:
        return attribute.ints.size() <= kLongest && integers({attribute.ints.begin(), attribute.ints.end()}, true);
      case AttributeKind::kInt:
        return integers({attribute.i}, takes_list(moved.operand));
      case AttributeKind::kFloat:
        return number(attribute.f, moved.operand);
      default:
        return false;
    }
  }
  const std::string& name() const { return name_; }

 private:
  static constexpr std::size_t kLongest = 64;

  bool takes_list(std::uint32_t operand) const {
    const ops::OpEntry* entry = call_.entry();
    return entry != nullptr && entry->role_of(call_.op().schema->inputs[operand].name) == ops::OperandRole::kHostList;
  }
  void constant(NewAttribute value, std::string result) {
    insert(new_constant("", std::move(result), std::move(value)));
  }
  void insert(NewNode node) {
    edits_.push_back(InsertNode{.before = call_.id(), .node = std::move(node), .graph = call_.node().graph});
  }

  bool integers(std::vector<std::int64_t> elements, bool list) {
    if (call_.op().opset >= kConstantTakesNumbers) {
      if (list)
        constant({.name = "value_ints", .kind = AttributeKind::kInts, .ints = std::move(elements)}, name_);
      else
        constant({.name = "value_int", .kind = AttributeKind::kInt, .i = elements.front()}, name_);
      return true;
    }
    if (call_.model().graph(call_.node().graph).kind == GraphKind::kFunction) return false;
    std::vector<std::int64_t> dims;
    if (list) dims.push_back(static_cast<std::int64_t>(elements.size()));
    edits_.push_back(AddInitializer{call_.node().graph, name_, std::move(dims), std::move(elements)});
    return true;
  }

  /// A scalar of the dtype that the operand has to have: that of operand 0 where they share a type variable.
  bool number(float value, std::uint32_t operand) {
    const auto& formals = call_.op().schema->inputs;
    DType dtype = DType::kFloat32;
    if (formals[operand].type == formals[0].type) {
      const auto single = call_.operand(0).fact().dtypes.single();
      if (!single) return false;
      dtype = *single;
    }
    if (call_.op().opset >= kConstantTakesNumbers) {
      const std::string raw = dtype == DType::kFloat32 ? name_ : unused_name(call_.model(), name_ + "_float32");
      constant({.name = "value_float", .kind = AttributeKind::kFloat, .f = value}, raw);
      if (dtype != DType::kFloat32) cast(raw, dtype);
      return true;
    }
    if (std::trunc(value) != value || std::fabs(value) > 1e15F) return false;
    const std::string result = name_;
    name_ += "_int64";
    if (!integers({static_cast<std::int64_t>(value)}, false)) return false;
    const std::string raw = std::exchange(name_, result);
    cast(raw, dtype);
    return true;
  }

  void cast(const std::string& from, DType to) { insert(new_cast("", from, name_, to)); }

  const NodeCall& call_;
  std::vector<GraphEdit>& edits_;
  std::string name_;
};

}  // namespace

std::vector<MovedAttribute> moved_attributes(const NodeCall& call) {
  const OpSchema* schema = call.op().schema;
  std::vector<MovedAttribute> moved;
  if (schema == nullptr || schema->deprecated || call.op().function != GraphId::kNone) return moved;
  // A node may have thousands of attributes of one name.
  struct Move {
    std::optional<std::uint32_t> operand;
    int since = 0;
  };
  std::map<std::string_view, Move> by_name;
  Meter& meter = call.analysis().meter();
  for (const Attribute& attribute : call.attributes()) {
    if (schema->attribute(attribute.name) != nullptr) continue;
    meter.charge(kStepsOfName);
    const auto [known, is_new] = by_name.try_emplace(attribute.name);
    Move& move = known->second;
    if (is_new) {
      meter.charge(kStepsOfOperand * schema->inputs.size());
      move.operand = operand_for(*schema, attribute.name);
    }
    if (is_new && move.operand) {
      meter.charge(kStepsOfVersion * static_cast<std::uint64_t>(schema->since_version));
      move.since = moved_since(*schema, attribute.name);
    }
    if (move.operand && move.since > 0) moved.push_back({&attribute, *move.operand, move.since});
  }
  // A file may sort attributes by name; operands are added in their order.
  std::ranges::sort(moved, {}, &MovedAttribute::operand);
  return moved;
}

std::vector<GraphEdit> move_to_operands(const NodeCall& call, const std::vector<MovedAttribute>& moved) {
  std::vector<GraphEdit> edits;
  if (call.result() == ValueId::kAbsent) return {};
  for (const MovedAttribute& one : moved) {
    // Given twice, it says two things: which of them is meant the file does not tell.
    const auto is_same = [&](const MovedAttribute& other) { return other.operand == one.operand; };
    if (std::ranges::count_if(moved, is_same) > 1) return {};
    OperandMaker maker(call, edits);
    if (call.operand(one.operand).present() || !one.attribute->reference.empty() || !maker.make(one)) return {};
    edits.push_back(SetOperand{call.id(), one.operand, maker.name()});
    edits.push_back(
        SetAttribute{call.id(), {.name = std::string(one.attribute->name), .kind = AttributeKind::kUndefined}});
  }
  return edits;
}

}  // namespace tensorlint::rules

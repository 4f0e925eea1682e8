#include "passes/placement/growing_devices.h"

#include <algorithm>
#include <optional>

#include "ir/graph/region_op.h"
#include "passes/placement/device_name.h"
#include "passes/placement/operator_traits.h"

namespace tensorlint::placement {
namespace {

/// Single devices, as infer_device asks for them. What is not known goes with everything.
struct SingleDevices {
  using Device = GrowingDevices::Number;
  bool differ = false;

  static Device host() { return GrowingDevices::kCpu; }
  static Device unknown() { return GrowingDevices::kUnknown; }
  Device meet(Device a, Device b) {
    if (a == unknown()) return b;
    differ = differ || (b != unknown() && a != b);
    return a;
  }
  Device meet_host(Device data, Device operand) { return operand == host() ? data : meet(data, operand); }
  static Device same_or_anywhere(Device a, Device b) { return a == b ? a : unknown(); }
};

}  // namespace

GrowingDevices::GrowingDevices(const dataflow::Analysis& analysis, std::string_view default_device)
    : analysis_(analysis), default_(number(default_device)) {}

GrowingDevices::Number GrowingDevices::number(std::string_view name) {
  const auto known = std::ranges::find(names_, name);
  if (known == names_.end()) return names_.emplace_back(name), static_cast<Number>(names_.size() - 1);
  return static_cast<Number>(known - names_.begin());
}

void GrowingDevices::set(ValueId value, Number device) {
  if (!devices_.contains(value)) devices_.resize(analysis_.model().values.size(), default_);
  devices_[value] = device;
}

const ops::DeviceSignature& GrowingDevices::signature(OperatorId op) {
  const Model& model = analysis_.model();
  while (!signatures_.contains(op))
    signatures_.push_back(device_signature(model, model.operators[signatures_.next_id()]));
  return signatures_[op];
}

bool GrowingDevices::add_call(NodeId id, Number own) {
  const Model& model = analysis_.model();
  const Node& node = model.node(id);
  const ops::DeviceSignature& rule = signature(node.op);
  SingleDevices devices;
  Number result = kUnknown;
  if (region_kind(model, model.op(node)) == RegionKind::kNone) {
    std::optional<Number> given;
    if (own != kUnknown) given = own;
    if (const Attribute* to = model.attribute(node, "device");
        rule.rule == ops::DeviceRule::kArgument && to != nullptr) {
      const auto name = canonical_device(to->s);
      given = name ? number(*name) : kUnknown;
    }
    const std::span<const ValueId> operands = model.operands(node);
    const auto device_of = [&](std::size_t i) {
      return operands[i] == ValueId::kAbsent ? std::nullopt : std::optional(device(operands[i]));
    };
    result = infer_device(rule, devices, given, operands.size(), device_of, [this] { return default_; });
  }
  for (const ValueId value : model.results(node))
    if (value != ValueId::kAbsent) set(value, result);
  return !devices.differ;
}

}  // namespace tensorlint::placement

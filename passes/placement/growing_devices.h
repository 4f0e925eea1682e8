#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/ops/device_rule.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint::placement {

/// The device of each value of a model that grows, call by call, as far as straight-line code decides it: bodies and
/// choices are for `place`, which follows whole models.
class GrowingDevices {
 public:
  using Number = std::int16_t;
  static constexpr Number kUnknown = -1, kCpu = 0;

  /// `default_device`: canonical, of values that nothing places. `analysis` outlives this.
  GrowingDevices(const dataflow::Analysis& analysis, std::string_view default_device);

  /// Of a canonical name.
  Number number(std::string_view name);
  std::string_view name(Number device) const { return names_[static_cast<std::size_t>(device)]; }
  Number default_device() const { return default_; }

  Number device(ValueId value) const { return devices_.contains(value) ? devices_[value] : default_; }
  void set(ValueId value, Number device);
  /// The device of the call's results; `own`: where it is said to run, kUnknown where nothing is said. False where
  /// operands that have to be together are on different devices.
  bool add_call(NodeId call, Number own);

 private:
  const ops::DeviceSignature& signature(OperatorId op);

  const dataflow::Analysis& analysis_;
  std::vector<std::string> names_{"cpu"};
  Number default_;
  IdVector<ValueId, Number> devices_;
  IdVector<OperatorId, ops::DeviceSignature> signatures_;
};

}  // namespace tensorlint::placement

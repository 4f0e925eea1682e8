#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "ir/facts/fact.h"
#include "runtime/values/host_tensor.h"

namespace tensorlint::runtime {

/// What a value of a graph holds in a run: nothing, a tensor, a sequence, an optional or a map. Copies share elements.
class HostValue {
 public:
  HostValue() = default;
  HostValue(HostTensor tensor)
      : kind_(ValueKind::kTensor), tensor_(std::move(tensor)) {}  // NOLINT: a tensor is a value
  static HostValue sequence(std::vector<HostValue> elements, DType dtype) {
    return {ValueKind::kSequence, std::move(elements), dtype};
  }
  static HostValue empty_optional(DType dtype) { return {ValueKind::kOptional, {}, dtype}; }
  static HostValue optional(HostValue element) {
    const DType dtype = element.dtype();
    std::vector<HostValue> elements;
    elements.push_back(std::move(element));
    return {ValueKind::kOptional, std::move(elements), dtype};
  }

  bool is_absent() const { return kind_ == ValueKind::kUnknown; }
  ValueKind kind() const { return kind_; }
  bool is_tensor() const { return kind_ == ValueKind::kTensor; }
  const HostTensor& tensor() const { return tensor_; }
  HostTensor& tensor() { return tensor_; }
  /// Of a sequence or an optional.
  const std::vector<HostValue>& elements() const { return *elements_; }
  /// Of the tensors inside.
  DType dtype() const { return is_tensor() ? tensor_.dtype() : dtype_; }

 private:
  HostValue(ValueKind kind, std::vector<HostValue> elements, DType dtype)
      : kind_(kind), dtype_(dtype), elements_(std::make_shared<std::vector<HostValue>>(std::move(elements))) {}

  ValueKind kind_ = ValueKind::kUnknown;
  DType dtype_ = DType::kUndefined;
  HostTensor tensor_;
  std::shared_ptr<const std::vector<HostValue>> elements_;
};

}  // namespace tensorlint::runtime

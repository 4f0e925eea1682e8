#pragma once

#include <cstdint>
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
  /// `memory` counts the list, beside the tensors in it.
  static HostValue sequence(std::vector<HostValue> elements, DType dtype, Memory& memory) {
    HostValue value;
    value.kind_ = ValueKind::kSequence;
    value.dtype_ = dtype;
    const auto list = std::make_shared<const CountedList>(std::move(elements), memory);
    value.elements_ = {list, &list->elements};
    return value;
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
  /// The same as what copies of the value share.
  const std::shared_ptr<const std::vector<HostValue>>& list() const { return elements_; }
  /// Of the tensors inside.
  DType dtype() const { return is_tensor() ? tensor_.dtype() : dtype_; }

 private:
  struct CountedList {
    CountedList(std::vector<HostValue> values, Memory& account) : elements(std::move(values)), memory(account) {
      memory.take(bytes());
    }
    CountedList(const CountedList&) = delete;
    CountedList& operator=(const CountedList&) = delete;
    ~CountedList() { memory.give_back(bytes()); }
    std::uint64_t bytes() const { return elements.size() * sizeof(HostValue); }

    std::vector<HostValue> elements;
    Memory& memory;
  };

  HostValue(ValueKind kind, std::vector<HostValue> elements, DType dtype)
      : kind_(kind), dtype_(dtype), elements_(std::make_shared<std::vector<HostValue>>(std::move(elements))) {}

  ValueKind kind_ = ValueKind::kUnknown;
  DType dtype_ = DType::kUndefined;
  HostTensor tensor_;
  std::shared_ptr<const std::vector<HostValue>> elements_;
};

}  // namespace tensorlint::runtime

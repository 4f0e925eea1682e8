#include "ir/call/application.h"

namespace tensorlint {
namespace {

const FormalParameter* formal(std::span<const FormalParameter> formals, std::size_t index) {
  if (formals.empty()) return nullptr;
  if (index < formals.size()) return &formals[index];
  return formals.back().option == FormalOption::kVariadic ? &formals.back() : nullptr;
}

}  // namespace

const FormalParameter* Application::formal_operand(std::size_t index) const {
  return schema == nullptr ? nullptr : formal(schema->inputs, index);
}

const FormalParameter* Application::formal_result(std::size_t index) const {
  return schema == nullptr ? nullptr : formal(schema->outputs, index);
}

}  // namespace tensorlint

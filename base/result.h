#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

#include "base/position.h"

namespace tensorlint {

/// A fault of the world: file, model, usage. Faults of our own assert.
struct Error {
  std::string message;  ///< the situation, lower case, one line; names in it are not yet escaped
  Position position;    ///< where in the input; all zero where no place is to blame
};

/// A value, or the reason why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: `return value;`
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: `return Error{...};`

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return *checked(std::get_if<0>(&state_)); }
  const T& value() const& { return *checked(std::get_if<0>(&state_)); }
  T&& value() && { return std::move(*checked(std::get_if<0>(&state_))); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// Only when not ok().
  const Error& error() const { return *checked(std::get_if<1>(&state_)); }

 private:
  template <typename U>
  static U* checked(U* pointer) {
    assert(pointer != nullptr);
    return pointer;
  }

  std::variant<T, Error> state_;
};

}  // namespace tensorlint

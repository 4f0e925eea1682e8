#pragma once

#include <cstddef>
#include <ranges>
#include <vector>

namespace tensorlint {

/// An array by id: ids of values, nodes and graphs are dense enumerators, each of a type of its own.
template <typename Id, typename T>
class IdVector {
 public:
  IdVector() = default;
  explicit IdVector(std::size_t size, const T& value = T()) : items_(size, value) {}

  decltype(auto) operator[](Id id) { return items_[static_cast<std::size_t>(id)]; }
  decltype(auto) operator[](Id id) const { return items_[static_cast<std::size_t>(id)]; }
  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  std::vector<T> items_;
};

/// The ids from `first` up to `end`, which is not among them.
template <typename Id>
auto ids_below(std::size_t end, Id first = Id{}) {
  return std::views::iota(static_cast<std::size_t>(first), end) |
         std::views::transform([](std::size_t id) { return static_cast<Id>(id); });
}

}  // namespace tensorlint

#pragma once

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <utility>
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
  auto& front() { return items_.front(); }
  const auto& front() const { return items_.front(); }
  auto& back() { return items_.back(); }
  const auto& back() const { return items_.back(); }
  const T* data() const { return items_.data(); }

  void push_back(T item) { items_.push_back(std::move(item)); }
  template <typename... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    return items_.emplace_back(std::forward<Arguments>(arguments)...);
  }
  void reserve(std::size_t size) { items_.reserve(size); }
  void resize(std::size_t size, const T& value = T()) { items_.resize(size, value); }
  void assign(std::size_t size, const T& value) { items_.assign(size, value); }
  void clear() { items_.clear(); }

  /// The id that the next item gets.
  Id next_id() const { return static_cast<Id>(items_.size()); }
  bool contains(Id id) const { return static_cast<std::size_t>(id) < items_.size(); }
  /// Its ids, from `first` on.
  auto ids(Id first = Id{}) const {
    return std::views::iota(static_cast<std::size_t>(first), std::max(items_.size(), static_cast<std::size_t>(first))) |
           std::views::transform([](std::size_t id) { return static_cast<Id>(id); });
  }

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

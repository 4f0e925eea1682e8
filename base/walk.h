#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <ranges>
#include <set>
#include <span>
#include <utility>

#include "base/meter.h"

namespace tensorlint {

/// What a walk through a model goes over: the operands of a node, the users of a value, the nodes. Each step is charged
/// to the input's meter, and where that is spent no more come: a walk ends there, and so do the walks around it.
/// `all_of` and its like then answer for less than there is, which nothing follows from: a spent meter lets no finding
/// through, and results of searches that it cut off are not read (see base/meter.h).
template <std::ranges::view View>
class Walk {
 public:
  using Place = std::ranges::iterator_t<const View>;

  class Iterator {
   public:
    using value_type = std::ranges::range_value_t<View>;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;
    Iterator(Place at, Place end, Meter& meter) : at_(at), end_(end), meter_(&meter) { meter_->charge(1); }
    decltype(auto) operator*() const { return *at_; }
    Iterator& operator++() {
      ++at_;
      meter_->charge(1);
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }
    friend bool operator==(const Iterator& a, std::default_sentinel_t) {
      return a.at_ == a.end_ || a.meter_->is_spent();
    }

   private:
    Place at_{}, end_{};
    Meter* meter_ = nullptr;
  };

  Walk(View view, Meter& meter) : view_(std::move(view)), meter_(&meter) {}

  Iterator begin() const { return Iterator(std::ranges::begin(view_), std::ranges::end(view_), *meter_); }
  std::default_sentinel_t end() const { return {}; }
  std::size_t size() const { return std::ranges::size(view_); }
  bool empty() const { return size() == 0; }
  decltype(auto) front() const { return (*this)[0]; }
  /// A step, too. There even where the meter is spent.
  decltype(auto) operator[](std::size_t index) const {
    meter_->charge(1);
    return std::ranges::begin(view_)[static_cast<std::ptrdiff_t>(index)];
  }
  /// No more than the first `most` of a span.
  Walk first(std::size_t most) const { return Walk(view_.first(most < size() ? most : size()), *meter_); }
  /// The whole of it, charged at once: for what is not looked at step by step.
  View read() const {
    meter_->charge(size());
    return view_;
  }

 private:
  View view_;
  Meter* meter_;
};

template <typename T>
using SpanWalk = Walk<std::span<const T>>;

/// Where a walk has been: what is visited, and charged, once.
template <typename Id>
class Visited {
 public:
  explicit Visited(Meter& meter) : meter_(meter) {}
  /// True the first time.
  bool insert(Id id) {
    meter_.charge(kStepsOfVisit);
    return ids_.insert(id).second;
  }
  bool contains(Id id) const {
    meter_.charge(1);
    return ids_.contains(id);
  }
  std::size_t size() const { return ids_.size(); }

 private:
  static constexpr std::uint64_t kStepsOfVisit = 8;  // an allocation
  Meter& meter_;
  std::set<Id> ids_;
};

}  // namespace tensorlint

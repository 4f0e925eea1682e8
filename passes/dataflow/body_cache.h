#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "passes/dataflow/abstract_value.h"
#include "passes/dataflow/order.h"

namespace tensorlint::dataflow {

/// What bodies of Loops and Scans did when they were handed some inputs and met some values of the graphs around them.
/// Loops within loops would be followed 2^depth times, if this were not kept.
class BodyCache {
 public:
  /// `bodies`: bodies_by_graph.
  BodyCache(const Model& model, const BodiesByGraph& bodies);

  struct Visit {
    std::vector<AbstractValue> given;  ///< inputs, then captures
    std::vector<AbstractValue> outputs;
  };
  struct Body {
    std::vector<ValueId> captures;  ///< values of other graphs that the body, or what is nested in it, reads
    std::vector<Visit> visits;

    /// The outputs of the visit that was given this; null where there is none. Adds the values that were compared to
    /// `compared`.
    const std::vector<AbstractValue>* find(std::span<const AbstractValue> given, std::uint64_t& compared) const;
    /// States of loops around it multiply, mostly in their ranges: visits after the first few are to take any floating
    /// value, so that they repeat.
    bool is_exact() const { return visits.size() < kExactVisits; }

   private:
    friend class BodyCache;
    bool is_too_large = false;
    std::uint64_t call = 0;  // of the function around it: another call may have other attributes
  };

  /// Counts a visit of the body in the function call of this number. What is known of the body, or null where nothing
  /// is kept: for its first visits, and where it captures too much. Valid as long as this.
  Body* visit(GraphId body, std::uint64_t call);
  /// The model has got more graphs.
  void grow() { first_visits_.resize(model_.graphs.size()); }
  /// As if the body had never been visited.
  void forget(GraphId body) {
    first_visits_[static_cast<std::size_t>(body)] = 0;
    kept_.erase(body);
  }
  /// Unless there are too many.
  void keep(Body& body, std::vector<AbstractValue> given, const std::vector<AbstractValue>& outputs);

 private:
  static constexpr std::size_t kExactVisits = 8;

  std::vector<ValueId> captures_of(GraphId body) const;
  bool take_room(std::size_t values);

  const Model& model_;
  const BodiesByGraph& bodies_;
  std::vector<std::uint8_t> first_visits_;  // by graph, at most kVisitsBeforeKept
  std::unordered_map<GraphId, Body> kept_;
  std::size_t room_;  // for values of visits
};

}  // namespace tensorlint::dataflow

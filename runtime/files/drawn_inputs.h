#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/result.h"
#include "ir/graph/model.h"
#include "runtime/values/host_value.h"

namespace tensorlint::runtime {

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  double uniform();  ///< in (0, 1)
  double normal();   ///< N(0, 1), by Box and Muller

 private:
  std::uint64_t state_;
};

std::int64_t drawn_extent(Random& random);  ///< in [1, 4]

/// What is known of the inputs that are to be drawn.
struct InputPlan {
  struct Bounds {
    std::int64_t least = 0, most = 0;
  };
  std::map<ValueId, Extents> extents{};
  std::map<ValueId, Bounds> elements{};  ///< of integers
};
/// Of integers of which nothing is known.
inline constexpr InputPlan::Bounds kUsualElements{0, 9};

/// Fills the inputs that are absent and have no default: floats from N(0, 1), integers from [0, 10), one extent from
/// [1, 4] for each name of a dim and each dim without one, but for those that the plan knows. The same seed gives the
/// same inputs. Errors: an input whose type is not declared, or is not a numeric tensor.
std::optional<Error> draw_inputs(const Model& model, std::uint64_t seed, Memory& memory, std::vector<HostValue>& inputs,
                                 const InputPlan& plan = {});

/// A value that an input is given has the declared kind, dtype and extents.
std::optional<Error> check_input(const Model& model, ValueId input, const HostValue& value);

}  // namespace tensorlint::runtime

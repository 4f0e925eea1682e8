#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/facts/dim.h"
#include "ir/types/dtype.h"

namespace tensorlint {

/// What a value may hold. kUnknown is top for the kind: it may be any of them.
enum class ValueKind : std::uint8_t { kUnknown, kTensor, kSparseTensor, kSequence, kOptional, kMap };

std::string_view to_text(ValueKind kind);

enum class ShapeId : std::uint32_t { kUnranked = 0 };
enum class ContentId : std::uint32_t { kNone = 0 };
enum class FactId : std::uint32_t { kTop = 0, kAbsent = 0xffff'ffffU };

/// Values of all elements lie in [lo, hi]; `nan` says whether NaN may be among them. Integers beyond 2^53 are rounded
/// outwards. Default: anything.
struct Range {
  double lo = -std::numeric_limits<double>::infinity();
  double hi = std::numeric_limits<double>::infinity();
  bool nan = true;

  bool is_everything() const {
    return lo == -std::numeric_limits<double>::infinity() && hi == std::numeric_limits<double>::infinity();
  }
  friend bool operator==(const Range&, const Range&) = default;
  std::string to_text() const;  ///< "[0, 9]"
};

/// A bound of a range as texts show it: "3", "0.5", "-inf".
std::string bound_text(double bound);

/// Widest range of a dtype set: [0, 1] for bool, the type's limits for integers, everything with NaN for floats.
Range range_of(DTypeSet dtypes);
Range join(const Range& a, const Range& b);

/// Elements of a small tensor, row-major: integers (and bools) as dims, floats as numbers; one of the two is empty.
/// An element that is not known is an unknown Dim; float contents are kept only where every element is known.
struct Content {
  std::vector<Dim> integers;
  std::vector<double> floats;
  std::size_t size() const { return integers.size() + floats.size(); }
  /// Bit by bit: of floats NaN equals itself, and 0 not -0.
  friend bool operator==(const Content& a, const Content& b);
};

/// Contents with more elements than this are not tracked.
inline constexpr std::size_t kMaxContent = 1024;

/// Of sequences and optionals in one another no more are told: a loop may wrap what it carries once more in each
/// iteration.
inline constexpr std::uint8_t kMaxElementDepth = 16;

/// What is known of a value in every execution. Interned in a FactStore; equality is an id compare.
/// Tensors (dense, sparse): dtypes, shape, range, content. Sequences and optionals: `element` is what they hold
/// (for a sequence the join over its elements), `shape` of a sequence is its length as a 1-d shape. Maps: key and
/// element.
struct Fact {
  ValueKind kind = ValueKind::kUnknown;
  DType key = DType::kUndefined;
  DTypeSet dtypes = DTypeSet::all();
  ShapeId shape = ShapeId::kUnranked;
  ContentId content = ContentId::kNone;
  FactId element = FactId::kTop;
  Range range;
  /// Both bounds of `range` are elements, in every execution in which there are elements.
  bool attains = false;
  friend bool operator==(const Fact&, const Fact&) = default;
};

/// Interns shapes, contents and facts of one input and owns its dims. Not thread-safe. Charges the meter for what it is
/// given and makes; facts themselves stay exact where that is spent.
class FactStore {
 public:
  /// `meter`: of the input.
  explicit FactStore(std::shared_ptr<Meter> meter = std::make_shared<Meter>());
  ~FactStore();
  FactStore(const FactStore&) = delete;
  FactStore& operator=(const FactStore&) = delete;

  DimPool& dims() { return dims_; }
  const DimPool& dims() const { return dims_; }
  Meter& meter() const { return *dims_.shared_meter(); }
  const std::shared_ptr<Meter>& shared_meter() const { return dims_.shared_meter(); }

  ShapeId intern_shape(std::span<const Dim> dims);
  bool is_ranked(ShapeId shape) const { return shape != ShapeId::kUnranked; }
  /// The dims of a ranked shape; empty for an unranked one too, so ask is_ranked first. Stable.
  std::span<const Dim> dims_of(ShapeId shape) const;

  /// kNone when there are more than kMaxContent elements, or when nothing is known of any.
  ContentId intern_content(Content content);
  /// The content, nullptr for kNone. Stable. Whoever asks is charged for reading it once.
  const Content* content(ContentId content) const;

  FactId intern(const Fact& fact);
  const Fact& fact(FactId id) const;  ///< top for kAbsent. Stable.

  /// Least fact that covers both. Dims and elements that differ become unknown (kJoined).
  FactId join(FactId a, FactId b);

  /// "float32[N, 3] on cuda:0", for messages and `show`.
  std::string to_text(FactId id) const;
  std::string shape_text(ShapeId shape) const;  ///< "[N, 3]"; "[...]" when unranked

 private:
  struct Impl;
  DimPool dims_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tensorlint

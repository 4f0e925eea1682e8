#include "ir/facts/fact.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <unordered_map>
#include <utility>

#include "base/hash.h"

namespace tensorlint {
namespace {

std::uint64_t hash_of(std::span<const Dim> dims) {
  std::uint64_t hash = dims.size();
  for (const Dim dim : dims) hash = table_hash(hash, dim.id());
  return hash;
}

std::uint64_t hash_of(const Content& content) {
  std::uint64_t hash = hash_of(std::span<const Dim>(content.integers));
  for (const double value : content.floats) hash = table_hash(hash, std::bit_cast<std::uint64_t>(value));
  return table_hash(hash, content.floats.size());
}

std::uint64_t hash_of(const Fact& fact) {
  std::uint64_t hash = static_cast<std::uint64_t>(fact.kind) << 8 | static_cast<std::uint64_t>(fact.key);
  hash = table_hash(hash, std::uint64_t{fact.dtypes.bits()} << 32 | static_cast<std::uint64_t>(fact.shape));
  hash = table_hash(hash, static_cast<std::uint64_t>(fact.content) << 32 | static_cast<std::uint64_t>(fact.element));
  hash = table_hash(hash, std::bit_cast<std::uint64_t>(fact.range.lo + 0.0));  // -0 and 0 are equal
  return table_hash(hash, std::bit_cast<std::uint64_t>(fact.range.hi + 0.0) + (fact.range.nan ? 2 : 0) + fact.attains);
}

/// Of each item: allocation, hash, slots.
constexpr std::size_t kInternEntry = 48;

/// Items that never move, found again by hash.
template <typename Item>
class InternTable {
 public:
  template <typename Key, typename Make>
  std::uint32_t intern(std::uint64_t hash, const Key& key, Make make) {
    if (slots_.empty() || (items_.size() + 1) * 4 > slots_.size() * 3) grow();
    std::size_t slot = hash & (slots_.size() - 1);
    for (; slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1)) {
      const std::uint32_t index = slots_[slot] - 1;
      if (hashes_[index] == hash && items_[index] == key) return index;
    }
    items_.push_back(make());
    hashes_.push_back(hash);
    slots_[slot] = static_cast<std::uint32_t>(items_.size());
    return slots_[slot] - 1;
  }
  const Item& operator[](std::uint32_t index) const { return items_[index]; }

 private:
  void grow() {
    slots_.assign(std::max<std::size_t>(64, slots_.size() * 2), 0);
    for (std::uint32_t index = 0; index < items_.size(); ++index) {
      std::size_t slot = hashes_[index] & (slots_.size() - 1);
      while (slots_[slot] != 0) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = index + 1;
    }
  }

  std::deque<Item> items_;
  std::vector<std::uint64_t> hashes_;
  std::vector<std::uint32_t> slots_;  // index + 1; 0 is free
};

struct DimList {
  std::vector<Dim> dims;
  friend bool operator==(const DimList& list, std::span<const Dim> other) {
    return std::equal(list.dims.begin(), list.dims.end(), other.begin(), other.end());
  }
};

}  // namespace

bool operator==(const Content& a, const Content& b) {
  // Unless NaN were equal to itself, equal contents with one would be a new entry each, all of one hash.
  const auto same = [](double x, double y) {
    return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
  };
  return a.integers == b.integers && std::ranges::equal(a.floats, b.floats, same);
}

std::string_view to_text(ValueKind kind) {
  switch (kind) {
    case ValueKind::kUnknown:
      return "value";
    case ValueKind::kTensor:
      return "tensor";
    case ValueKind::kSparseTensor:
      return "sparse tensor";
    case ValueKind::kSequence:
      return "sequence";
    case ValueKind::kOptional:
      return "optional";
    case ValueKind::kMap:
      return "map";
  }
  return "";
}

std::string bound_text(double bound) {
  if (std::isinf(bound)) return bound < 0 ? "-inf" : "inf";
  return std::fabs(bound) < 1e15 && bound == std::floor(bound) ? fmt::format("{:.0f}", bound)
                                                               : fmt::format("{}", bound);
}

std::string Range::to_text() const { return "[" + bound_text(lo) + ", " + bound_text(hi) + "]"; }

Range range_of(DTypeSet dtypes) {
  if (dtypes.empty() || !dtypes.is_subset_of(DTypeSet::integers() | DTypeSet(DType::kBool))) return {};
  Range range{0, 0, false};
  for (int code = 1; code < kDTypeCount; ++code) {
    const auto dtype = static_cast<DType>(code);
    if (!dtypes.contains(dtype)) continue;
    const int bits = dtype == DType::kBool ? 1 : bit_width(dtype);
    const bool is_signed = DTypeSet::signed_integers().contains(dtype);
    range.lo = std::min(range.lo, is_signed ? -std::ldexp(1.0, bits - 1) : 0.0);
    // 2^63 - 1 and 2^64 - 1 round up to the power of two: outwards.
    range.hi = std::max(range.hi, std::ldexp(1.0, is_signed ? bits - 1 : bits) - 1.0);
  }
  return range;
}

Range join(const Range& a, const Range& b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi), a.nan || b.nan}; }

struct FactStore::Impl {
  explicit Impl(Meter& meter) : memory(meter) {}

  KeptMemory memory;
  InternTable<DimList> shapes;
  InternTable<Content> contents;
  InternTable<Fact> facts;
  std::vector<std::uint8_t> depths;  // by fact: elements in one another
};

FactStore::FactStore(std::shared_ptr<Meter> meter)
    : dims_(std::move(meter)), impl_(std::make_unique<Impl>(*dims_.shared_meter())) {
  intern(Fact{});  // FactId::kTop
}

FactStore::~FactStore() = default;

ShapeId FactStore::intern_shape(std::span<const Dim> dims) {
  meter().charge(4 + dims.size());
  const std::uint32_t index = impl_->shapes.intern(hash_of(dims), dims, [&] {
    meter().charge(16);
    impl_->memory.add(sizeof(DimList) + dims.size_bytes() + kInternEntry);
    return DimList{std::vector<Dim>(dims.begin(), dims.end())};
  });
  return static_cast<ShapeId>(index + 1);
}

std::span<const Dim> FactStore::dims_of(ShapeId shape) const {
  if (shape == ShapeId::kUnranked) return {};
  return impl_->shapes[static_cast<std::uint32_t>(shape) - 1].dims;
}

ContentId FactStore::intern_content(Content content) {
  if (content.size() > kMaxContent) return ContentId::kNone;
  const bool nothing_known = !content.integers.empty() && std::all_of(content.integers.begin(), content.integers.end(),
                                                                      [](Dim dim) { return dim.is_unknown(); });
  if (nothing_known) return ContentId::kNone;
  meter().charge(4 + content.size());
  const std::uint32_t index = impl_->contents.intern(hash_of(content), content, [&] {
    meter().charge(16 + content.size());
    impl_->memory.add(sizeof(Content) + content.integers.size() * sizeof(Dim) + content.floats.size() * sizeof(double) +
                      kInternEntry);
    return content;
  });
  return static_cast<ContentId>(index + 1);
}

const Content* FactStore::content(ContentId content) const {
  if (content == ContentId::kNone) return nullptr;
  const Content& known = impl_->contents[static_cast<std::uint32_t>(content) - 1];
  meter().charge(known.size() / 4);
  return &known;
}

FactId FactStore::intern(const Fact& fact) {
  const bool holds = fact.element != FactId::kTop && fact.element != FactId::kAbsent;
  const auto depth = static_cast<std::uint8_t>(holds ? impl_->depths[static_cast<std::size_t>(fact.element)] + 1 : 0);
  if (depth > kMaxElementDepth) {
    Fact open = fact;
    open.element = FactId::kTop;
    return intern(open);
  }
  meter().charge(8);
  const std::uint32_t id = impl_->facts.intern(hash_of(fact), fact, [&] {
    meter().charge(16);
    impl_->memory.add(sizeof(Fact) + kInternEntry);
    return fact;
  });
  if (id >= impl_->depths.size()) impl_->depths.resize(id + 1, depth);
  return static_cast<FactId>(id);
}

const Fact& FactStore::fact(FactId id) const {
  return impl_->facts[id == FactId::kAbsent ? 0 : static_cast<std::uint32_t>(id)];
}

FactId FactStore::join(FactId a_id, FactId b_id) {
  if (a_id == b_id) return a_id;
  if (a_id == FactId::kAbsent || b_id == FactId::kAbsent) return FactId::kTop;
  const Fact &a = fact(a_id), &b = fact(b_id);
  if (a.kind != b.kind) return FactId::kTop;
  Fact result;
  result.kind = a.kind;
  result.key = a.key == b.key ? a.key : DType::kUndefined;
  result.dtypes = a.dtypes | b.dtypes;
  result.range = tensorlint::join(a.range, b.range);
  result.attains = a.attains && b.attains && a.range == b.range;
  result.element = join(a.element, b.element);  // nesting is capped by intern()
  const auto joined = [this](Dim x, Dim y) { return dims_.equal(x, y) ? x : Dim(Unknown::kJoined); };
  if (is_ranked(a.shape) && is_ranked(b.shape) && dims_of(a.shape).size() == dims_of(b.shape).size()) {
    std::vector<Dim> dims(dims_of(a.shape).size());
    std::transform(dims_of(a.shape).begin(), dims_of(a.shape).end(), dims_of(b.shape).begin(), dims.begin(), joined);
    result.shape = intern_shape(dims);
  }
  const Content *x = content(a.content), *y = content(b.content);
  meter().charge(8 + dims_of(a.shape).size());
  if (a.content == b.content) {
    result.content = a.content;
  } else if (x && y && x->floats.empty() && x->integers.size() == y->integers.size()) {
    meter().charge(x->integers.size());
    Content merged;
    merged.integers.resize(x->integers.size());
    std::transform(x->integers.begin(), x->integers.end(), y->integers.begin(), merged.integers.begin(), joined);
    result.content = intern_content(std::move(merged));
  }
  return intern(result);
}

/// 64 extents of 4 KB each would be a text that nobody sees: reports show a thousand characters.
constexpr std::size_t kMaxShapeText = 1024;

std::string FactStore::shape_text(ShapeId shape) const {
  if (!is_ranked(shape)) return "[...]";
  std::string text = "[";
  for (const Dim dim : dims_of(shape)) {
    if (text.size() > 1) text += ", ";
    if (text.size() > kMaxShapeText) return text + "...]";
    text += dims_.to_text(dim);
  }
  meter().charge(4 + text.size() / 2);
  return text + "]";
}

std::string FactStore::to_text(FactId id) const {
  const Fact& value = fact(id);
  switch (value.kind) {
    case ValueKind::kUnknown:
      return "unknown";
    case ValueKind::kSequence:
      return "seq(" + to_text(value.element) + ")";
    case ValueKind::kOptional:
      return "optional(" + to_text(value.element) + ")";
    case ValueKind::kMap:
      return fmt::format("map({}, {})", tensorlint::to_text(value.key), to_text(value.element));
    case ValueKind::kTensor:
    case ValueKind::kSparseTensor:
      break;
  }
  std::string text = value.kind == ValueKind::kSparseTensor ? "sparse " : "";
  return text + value.dtypes.to_text() + shape_text(value.shape);
}

}  // namespace tensorlint

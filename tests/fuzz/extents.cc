#include "tests/fuzz/extents.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "ir/protobuf/onnx_fields.h"
#include "ir/protobuf/onnx_messages.h"
#include "ir/readers/onnx/wire.h"
#include "ir/writers/onnx/wire.h"
#include "tests/fuzz/fuzz_target.h"

namespace tensorlint::fuzz {
namespace {

/// Values at which products and sums of extents, axes and positions turn over.
constexpr std::array<std::int64_t, 16> kEdges{0,
                                              1,
                                              2,
                                              3,
                                              -1,
                                              -2,
                                              65536,
                                              std::int64_t{1} << 31,
                                              (std::int64_t{1} << 31) - 1,
                                              std::int64_t{1} << 32,
                                              std::int64_t{1} << 40,
                                              std::int64_t{1} << 62,
                                              (std::int64_t{1} << 62) + 1,
                                              -(std::int64_t{1} << 62),
                                              std::numeric_limits<std::int64_t>::max(),
                                              std::numeric_limits<std::int64_t>::min()};
constexpr int kDeepest = 64;  // of messages inside each other; what lies deeper stays as it is

using Kind = wire::MessageType;

struct Numbers {
  Kind whole;
  std::uint32_t field;
};
constexpr Numbers kNumbers[] = {{Kind::kTensor, wire::kTensorDims},       {Kind::kTensor, wire::kTensorInt64Data},
                                {Kind::kSparseTensor, wire::kSparseDims}, {Kind::kDimension, wire::kDimValue},
                                {Kind::kAttribute, wire::kAttributeInt},  {Kind::kAttribute, wire::kAttributeInts}};

/// Integers of a table that a Reshape or Slice may read.
constexpr std::size_t kSmallTable = 64;

class Rewriter {
 public:
  /// Changes the number at one place, counted from 0 in the order of the file.
  Rewriter(std::size_t place, std::mt19937_64& random) : place_(place), random_(random) {}

  void message(onnx::Cursor fields, Kind kind, int depth, wire::Encoder& out) {
    while (fields.next()) {
      const bool has_bytes = fields.type() == onnx::WireType::length_delimited;
      const auto part = wire::message_in(kind, fields.field());
      const bool is_number = std::ranges::any_of(
          kNumbers, [&](const Numbers& one) { return one.whole == kind && one.field == fields.field(); });
      if (part && has_bytes && depth < kDeepest) {
        wire::Encoder inner;
        message(fields.inside(fields.view("part")), *part, depth + 1, inner);
        out.text(fields.field(), inner.bytes());
      } else if (is_number && has_bytes) {
        wire::Encoder packed;
        for (onnx::Cursor numbers = fields.inside(fields.view("numbers")); !numbers.at_end();)
          number(numbers.packed_integer(),
                 [&](std::int64_t value) { packed.varint(static_cast<std::uint64_t>(value)); });
        out.text(fields.field(), packed.bytes());
      } else if (is_number && fields.type() == onnx::WireType::varint) {
        number(fields.integer("number"), [&](std::int64_t value) { out.number(fields.field(), value); });
      } else if (kind == Kind::kTensor && fields.field() == wire::kTensorRawData && has_bytes) {
        out.text(fields.field(), table(fields.view("raw_data")));
      } else {
        fields.skip();
        out.raw({fields.field_start(), static_cast<std::size_t>(fields.position() - fields.field_start())});
      }
    }
  }

  std::size_t places() const { return places_; }

 private:
  template <typename Write>
  void number(std::int64_t value, const Write& write) {
    if (places_++ != place_) {
      write(value);
      return;
    }
    switch (random_() % 8) {
      case 0:
        return;
      case 1:
        write(value);
        write(value);
        return;
      default:
        write(kEdges[random_() % kEdges.size()]);
    }
  }

  std::string table(std::string_view raw) {
    std::string out;
    if (raw.size() > kSmallTable || raw.size() % sizeof(std::int64_t) != 0) return std::string(raw);
    for (; !raw.empty(); raw.remove_prefix(sizeof(std::int64_t))) {
      std::int64_t element;
      std::memcpy(&element, raw.data(), sizeof element);
      number(element, [&](std::int64_t value) {
        char bytes[sizeof value];
        std::memcpy(bytes, &value, sizeof value);
        out.append(bytes, sizeof bytes);
      });
    }
    return out;
  }

  std::size_t place_, places_ = 0;
  std::mt19937_64& random_;
};

constexpr std::size_t kNoPlace = std::numeric_limits<std::size_t>::max();

std::string with_another_extent(std::string_view model, std::mt19937_64& random) try {
  const onnx::Cursor fields(model, model.data());
  Rewriter counted(kNoPlace, random);
  wire::Encoder same, changed;
  counted.message(fields, Kind::kModel, 0, same);
  if (counted.places() == 0) return std::string(model);
  Rewriter(random() % counted.places(), random).message(fields, Kind::kModel, 0, changed);
  return changed.take();
} catch (const onnx::WireFault&) {
  return std::string(model);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string with_another_number(std::string_view text, std::mt19937_64& random) {
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (is_digit(text[i]) && (i == 0 || !is_digit(text[i - 1]))) starts.push_back(i);
  std::string out(text);
  if (starts.empty()) return out;
  const std::size_t start = starts[random() % starts.size()];
  std::size_t size = 1;
  while (start + size < text.size() && is_digit(text[start + size])) ++size;
  return out.replace(start, size, std::to_string(kEdges[random() % kEdges.size()]));
}

}  // namespace

std::string with_other_extents(std::string_view model, std::mt19937_64& random) {
  std::string changed(model);
  for (std::size_t changes = 1 + random() % 3; changes != 0; --changes)
    changed = starts_as_binary(model) ? with_another_extent(changed, random) : with_another_number(changed, random);
  return changed;
}

}  // namespace tensorlint::fuzz

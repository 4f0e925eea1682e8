#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "ir/constants/tensor.h"
#include "ir/types/dtype.h"

namespace tensorlint::text {

/// The shortest text that reads back as the number.
template <typename Number>
void append_number(std::string& out, Number number) {
  if constexpr (std::is_floating_point_v<Number>) {
    if (std::isnan(number)) {  // no payload
      out += std::signbit(number) ? "-nan" : "nan";
      return;
    }
  }
  char digits[48];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number);
  out.append(digits, end);
}

/// The elements of a constant that are there, whatever its dims say, one after the other. `tensor` outlives it. Of
/// packed varints no more than `most` and one more are there: how many follow is not counted.
class ElementPrinter {
 public:
  ElementPrinter(const Tensor& tensor, std::uint64_t most);

  std::uint64_t count() const { return count_; }
  void append(std::string& out, std::uint64_t index) const;

 private:
  void unpack(std::string_view varints, std::uint64_t most);

  DType dtype_ = DType::kUndefined;
  unsigned bits_ = 8;
  std::string_view bytes_;
  std::string unpacked_;
  std::span<const std::string_view> strings_;
  std::uint64_t count_ = 0;
};

}  // namespace tensorlint::text

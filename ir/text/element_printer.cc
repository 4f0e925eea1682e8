#include "ir/text/element_printer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "ir/constants/varint.h"
#include "ir/text/lexer.h"

namespace tensorlint::text {

/// Packed varints to elements next to each other; those of 2 and 4 bits are already so in each varint's low byte.
void ElementPrinter::unpack(std::string_view varints, std::uint64_t most) {
  std::uint64_t waiting = 0;
  unsigned waiting_bits = 0;
  while (unpacked_.size() * 8 / bits_ <= most) {
    const std::optional<std::uint64_t> value = next_varint(varints);
    if (!value) break;
    if (bits_ == 6) {
      waiting |= (*value & 63) << waiting_bits;
      for (waiting_bits += 6; waiting_bits >= 8; waiting_bits -= 8, waiting >>= 8)
        unpacked_ += static_cast<char>(waiting & 0xff);
    } else {
      for (unsigned done = 0; done < std::max(bits_, 8U); done += 8)
        unpacked_ += static_cast<char>(*value >> done & 0xff);
    }
  }
  if (waiting_bits != 0) unpacked_ += static_cast<char>(waiting & 0xff);
}

ElementPrinter::ElementPrinter(const Tensor& tensor, std::uint64_t most) {
  if (tensor.external || !is_known_dtype(tensor.dtype_code)) return;
  dtype_ = static_cast<DType>(tensor.dtype_code);
  strings_ = tensor.strings;
  if (dtype_ == DType::kString) {
    count_ = strings_.size();
    return;
  }
  bits_ = static_cast<unsigned>(bit_width(dtype_));
  if (dtype_ == DType::kComplex64 || dtype_ == DType::kComplex128) bits_ /= 2;
  const bool words = tensor.typed_field == TypedField::kFloat || tensor.typed_field == TypedField::kDouble;
  const bool floating = dtype_ == DType::kFloat32 || dtype_ == DType::kComplex64;
  const bool wide = dtype_ == DType::kFloat64 || dtype_ == DType::kComplex128;
  if (tensor.has_raw) {
    bytes_ = tensor.raw;
  } else if (words && (tensor.typed_field == TypedField::kFloat ? floating : wide)) {
    bytes_ = tensor.typed;
  } else if (!words && !floating && !wide) {
    unpack(tensor.typed, most);
    bytes_ = unpacked_;
  }
  count_ = std::uint64_t{bytes_.size()} * 8 / bits_;
  // The last byte may be padded.
  if (bits_ < 8)
    if (const auto claimed = tensor.element_count();
        claimed && *claimed < count_ && packed_bytes(dtype_, *claimed) == bytes_.size())
      count_ = *claimed;
}

void ElementPrinter::append(std::string& out, std::uint64_t index) const {
  if (dtype_ == DType::kString) {
    out += text::quoted(strings_[index]);
    return;
  }
  std::uint64_t pattern = 0;
  if (bits_ >= 8) {
    std::memcpy(&pattern, bytes_.data() + index * (bits_ / 8), bits_ / 8);
  } else {
    const std::uint64_t first = index * bits_;
    pattern = static_cast<std::uint8_t>(bytes_[first / 8]);
    if (first / 8 + 1 < bytes_.size()) pattern |= std::uint64_t{static_cast<std::uint8_t>(bytes_[first / 8 + 1])} << 8;
    pattern = pattern >> (first % 8) & ((std::uint64_t{1} << bits_) - 1);
  }
  switch (dtype_) {
    case DType::kFloat32:
    case DType::kComplex64:
      append_number(out, std::bit_cast<float>(static_cast<std::uint32_t>(pattern)));
      break;
    case DType::kFloat64:
    case DType::kComplex128:
      append_number(out, std::bit_cast<double>(pattern));
      break;
    case DType::kBool:
      append_number(out, static_cast<int>(pattern != 0));
      break;
    default:
      if (!DTypeSet::signed_integers().contains(dtype_))
        append_number(out, pattern);
      else
        append_number(out, static_cast<std::int64_t>(pattern << (64 - bits_)) >> (64 - bits_));
      break;
  }
}

}  // namespace tensorlint::text

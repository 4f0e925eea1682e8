#pragma once

// One line of JSON with the figures of one measurement.

#include <cmath>
#include <cstdint>
#include <iomanip>
#include <sstream>
#include <string>

namespace tensorlint::kernels {

struct Line {
  std::ostringstream text;
  explicit Line(const char* part) { text << "{\"part\": \"" << part << "\""; }
  /// Whole numbers in full, since byte counts are keys that other parts are matched by; others to 9 digits.
  Line& add(const std::string& key, double value) {
    text << ", \"" << key << "\": ";
    if (!std::isfinite(value)) {
      text << "null";
    } else if (value == std::floor(value) && std::fabs(value) < 0x1p53) {
      text << static_cast<std::int64_t>(value);
    } else {
      text << std::setprecision(9) << value;
    }
    return *this;
  }
  Line& add(const std::string& key, const std::string& value) {
    text << ", \"" << key << "\": \"" << value << "\"";
    return *this;
  }
  std::string done() const { return text.str() + "}"; }
};

}  // namespace tensorlint::kernels

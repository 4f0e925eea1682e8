#pragma once

#include <bitset>
#include <cstddef>
#include <initializer_list>
#include <string_view>

namespace tensorlint::findings {

/// Codes of rules, a bit for each: a file may hold any number of lists that name nearly all rules.
class RuleCodes {
 public:
  RuleCodes() = default;
  RuleCodes(std::initializer_list<std::string_view> codes) {
    for (const std::string_view code : codes) insert(code);
  }
  /// A code is of the form TL-G606: its number belongs to one rule.
  void insert(std::string_view code);
  bool contains(std::string_view code) const;
  bool empty() const { return bits_.none(); }
  std::size_t size() const { return bits_.count(); }
  bool is_subset_of(const RuleCodes& other) const { return (bits_ & ~other.bits_).none(); }
  bool intersects(const RuleCodes& other) const { return (bits_ & other.bits_).any(); }
  RuleCodes& operator|=(const RuleCodes& other) {
    bits_ |= other.bits_;
    return *this;
  }
  friend bool operator==(const RuleCodes&, const RuleCodes&) = default;

 private:
  static constexpr std::size_t kNumbers = 1000;
  std::bitset<kNumbers> bits_;
};

}  // namespace tensorlint::findings

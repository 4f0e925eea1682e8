#include "analyzer/findings/fingerprint.h"

#include <fmt/format.h>

#include <cstdint>

namespace tensorlint::findings {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The exporter's trace has lines without it, the program itself has it, and which of them is at hand differs by
/// machine.
std::string_view without_indentation(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view()
                                         : line.substr(first, line.find_last_not_of(" \t") - first + 1);
}

/// FNV-1a, 64 bits: the same on every machine, which std::hash is not.
class Hash {
 public:
  void add(std::string_view text) {
    for (const char c : text) add(static_cast<unsigned char>(c));
    add(0xff);  // in no UTF-8 text: keeps neighbouring parts apart
  }
  std::uint64_t value() const { return value_; }

 private:
  void add(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001b3U; }
  std::uint64_t value_ = 0xcbf29ce484222325U;
};

}  // namespace

std::string without_numbers(std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (!is_digit(name[i])) {
      out += name[i];
      continue;
    }
    while (i + 1 < name.size() && is_digit(name[i + 1])) ++i;
    // "Add" becomes "Add_1" once another one comes before it.
    while (!out.empty() && (out.back() == '_' || out.back() == '.')) out.pop_back();
  }
  return out;
}

std::string fingerprint(const Finding& finding) {
  Hash hash;
  hash.add(finding.code);
  hash.add(without_numbers(finding.graph));
  hash.add(finding.op);
  hash.add(without_numbers(finding.node));
  hash.add(without_numbers(finding.value));
  hash.add(finding.module);
  // The line of a model in text is made of the same names; the user's own line stays as it was written.
  const bool in_program = finding.place.known() && finding.place.file != finding.path;
  hash.add(in_program ? without_indentation(finding.place.source) : std::string_view());
  return fmt::format("{:016x}", hash.value());
}

}  // namespace tensorlint::findings

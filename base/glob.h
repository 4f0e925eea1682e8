#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace tensorlint {

/// `*` stands for any text, `?` for one byte: for names of nodes and graphs. An empty glob matches everything.
bool matches_name(std::string_view glob, std::string_view name);
/// What that takes at most, in steps of a Meter: linear in both, but for parts with wildcards of one character between
/// stars, which take a 64th of the product.
std::uint64_t steps_of_match(std::string_view glob, std::string_view name);

/// A path with `/` between folders, which many globs are compared with: `*` and `?` stay inside one folder, `**` goes
/// through any number of them (`a/**`, `**/b`, `a/**/b`). A glob without `/` is about the file's name, whatever folder
/// it is in. Empty matches everything. What all globs read of the path is made once.
///
/// The globs may come from a file beside thousands of tiny models: one path takes no more than kMostSteps of 64 bytes
/// of it for a byte of a glob. Globs that another folder or name tells apart take none.
class PathMatcher {
 public:
  /// `path` outlives this.
  explicit PathMatcher(std::string_view path);
  ~PathMatcher();
  static constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 17;
  /// False once the steps are taken, which `is_spent` says.
  bool matches(std::string_view glob);
  bool is_spent() const { return steps_ > kMostSteps; }

 private:
  struct Whole;
  std::unique_ptr<Whole> path_, name_;
  std::uint64_t steps_ = 0;
};

}  // namespace tensorlint

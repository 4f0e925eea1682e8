#pragma once

#include <memory>
#include <string_view>

namespace tensorlint {

/// `*` stands for any text, `?` for one byte: for names of nodes and graphs. An empty glob matches everything.
bool matches_name(std::string_view glob, std::string_view name);

/// A path with `/` between folders, which many globs are compared with: `*` and `?` stay inside one folder, `**` goes
/// through any number of them (`a/**`, `**/b`, `a/**/b`). A glob without `/` is about the file's name, whatever folder
/// it is in. Empty matches everything. What all globs read of the path is made once.
class PathMatcher {
 public:
  /// `path` outlives this.
  explicit PathMatcher(std::string_view path);
  ~PathMatcher();
  bool matches(std::string_view glob);

 private:
  struct Whole;
  std::unique_ptr<Whole> path_, name_;
};

}  // namespace tensorlint

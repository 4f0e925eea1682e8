#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/findings/finding.h"
#include "base/result.h"

namespace tensorlint::config {

/// Findings that are known, by input and place; new ones have other fingerprints. A finding loses the
/// places that are known, and goes with its last one. In the file an input's path is
/// relative to the baseline's folder, so the two may move together.
class Baseline {
 public:
  /// An empty one that will be written to `path`.
  explicit Baseline(std::string path);
  /// Errors: not there, above 64 MiB, not of this form.
  static Result<Baseline> read(const std::string& path);

  /// Adds all findings of one input.
  void add(const std::string& input, std::span<const findings::Finding> findings);
  std::string to_json() const;
  std::size_t size() const;

  struct Known {
    std::size_t found = 0;  ///< places taken out of the findings
    std::size_t gone = 0;   ///< in the baseline, and no longer found
  };
  /// Takes the known findings of one input out of `findings`; of several equal ones the first are the known ones.
  Known take_out(const std::string& input, std::vector<findings::Finding>& findings) const;

  const std::string& path() const { return path_; }

 private:
  struct Entry {
    std::string rule, message;  ///< for people
    std::size_t count = 0;
  };
  std::string key(const std::string& input) const;

  std::string path_;
  std::map<std::string, std::map<std::string, Entry>> inputs_;  ///< by path, by fingerprint
};

}  // namespace tensorlint::config

#pragma once

#include <cstddef>
#include <map>
#include <memory>
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
  static constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
  /// Of one that only a found configuration names: some 13,000 findings.
  static constexpr std::size_t kMaxFoundBytes = std::size_t{4} << 20;
  /// Errors: not there, above `most_bytes`, not of this form.
  static Result<Baseline> read(const std::string& path, std::size_t most_bytes = kMaxBytes);
  /// One that was read, by another path to the same file: what is in it is kept once.
  Baseline at(std::string path) const;

  /// Adds all findings of one input.
  void add(const std::string& input, std::span<const findings::Finding> findings);
  std::string to_json() const;

  struct Known {
    std::size_t found = 0;  ///< places taken out of the findings
    std::size_t gone = 0;   ///< in the baseline, and no longer found
  };
  /// Takes the known findings of one input out of `findings`; of several equal ones the first are the known ones.
  Known take_out(const std::string& input, std::vector<findings::Finding>& findings) const;

  const std::string& path() const { return path_; }

 private:
  struct Entry {
    std::string rule, message;  ///< for people, who read them in the file: not kept of one that is read
    std::size_t count = 0;
  };
  struct Entries {
    std::map<std::string, Entry> by_print;
    std::size_t places = 0;  ///< of all of them
  };
  using Inputs = std::map<std::string, Entries>;  ///< by path
  class Reader;
  std::string key(const std::string& input) const;

  std::string path_;
  std::shared_ptr<Inputs> inputs_ = std::make_shared<Inputs>();  ///< of those that are read, shared
};

}  // namespace tensorlint::config

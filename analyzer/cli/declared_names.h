#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/cli/settings.h"
#include "ir/graph/model.h"

namespace tensorlint::cli {

/// Which of the names that options and configurations declare some model has. Threads may share one.
class DeclaredNames {
 public:
  /// `values`: that options declare.
  void note(const Model& model, const DeclaredValues& values, const InputSettings& settings);

  /// A name that an option declares and that some model has.
  bool is_known(const std::string& name) const { return known_.contains(name); }
  /// What a row [[models]] declares that none of its models has; empty for none.
  std::string unknown_in_config() const;

 private:
  /// A row that applies to some model.
  struct Row {
    std::vector<bool> is_known;  ///< by entry: some model has it
    std::size_t unknown = 0;     ///< entries
  };

  std::mutex mutex_;
  std::set<std::string> known_;
  std::map<std::pair<std::shared_ptr<const config::Config>, std::uint32_t>, Row> rows_;  ///< by number of declarations
};

}  // namespace tensorlint::cli

#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <tuple>

#include "analyzer/cli/settings.h"
#include "ir/graph/model.h"

namespace tensorlint::cli {

/// Which of the names that options and configurations declare some model has. Threads may share one.
class DeclaredNames {
 public:
  /// `options`: values that options declare.
  void note(const Model& model, const dataflow::AnalysisOptions& options, const InputSettings& settings);

  /// A name that an option declares and that some model has.
  bool is_known(const std::string& name) const { return known_.contains(name); }
  /// What a row [[models]] declares that none of its models has; empty for none.
  std::string unknown_in_config() const;

 private:
  std::mutex mutex_;
  std::set<std::string> known_;
  std::map<std::tuple<std::string, std::uint32_t, std::string>, bool>
      of_configs_;  // by path, line and name: some model has it
};

}  // namespace tensorlint::cli

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "analyzer/builder/state.h"
#include "ir/graph/provenance.h"

namespace tensorlint::builder {

/// What a builder knows about nodes and values beside the model, as the metadata that exporters leave.
class BuilderProvenance final : public Provenance {
 public:
  explicit BuilderProvenance(const State& state) : state_(state) {}

  std::vector<MetadataEntry> node_metadata(const Node& node) const override;
  std::vector<MetadataEntry> value_metadata(ValueId value) const override;
  std::vector<MetadataEntry> initializer_metadata(ValueId value) const override;
  bool mentions(std::string_view key) const override;

 private:
  std::string_view trace_of(const std::source_location& at) const;

  const State& state_;
  // Texts that were asked for. Nodes of one line share theirs.
  mutable std::map<std::tuple<const char*, std::uint32_t, const char*>, std::string> traces_;
  mutable std::map<std::pair<std::uint32_t, NameId>, std::string> modules_;  // by scope and node's name
};

}  // namespace tensorlint::builder

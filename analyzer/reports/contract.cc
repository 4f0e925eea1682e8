#include "analyzer/reports/contract.h"

#include <fmt/format.h>

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "analyzer/findings/source_location.h"
#include "base/escape.h"
#include "base/version.h"
#include "passes/contract/dim_text.h"

namespace tensorlint::reports {
namespace {

using contract::Requirement;
using contract::RequirementKind;
using Json = nlohmann::ordered_json;

/// Requirements in words, each with the place that asks for it.
class ContractReport {
 public:
  ContractReport(const dataflow::Analysis& analysis, const contract::Contract& contract, const std::string& source_root)
      : analysis_(analysis),
        model_(analysis.model()),
        pool_(analysis.facts().dims()),
        contract_(contract),
        locations_(model_, source_root) {
    analysis.meter().begin_reports();
    for (const ValueId input : model_.graph(GraphId::kMain).inputs) {
      if (input == ValueId::kAbsent || analysis_.fact(input).kind != ValueKind::kTensor) continue;
      for (const Dim dim : analysis_.facts().dims_of(analysis_.fact(input).shape))
        if (pool_.is_symbol(dim)) axis_names_.insert(pool_.to_text(dim));
    }
  }

  std::string lines() {
    std::string text;
    for (const Requirement& requirement : contract_.requirements) {
      text += line_of(requirement);
      if (!requirement.is_exact) text += "    (sufficient only: some other inputs run, too)";
      text += '\n';
      if (requirement.node == NodeId::kNone) continue;
      const Node& node = model_.node(requirement.node);
      text += fmt::format("    asked for by node `{}` ({})", escape_for_display(model_.label(requirement.node), 200),
                          escape_for_display(model_.text(model_.op(node).name), 200));
      const findings::SourceLocation& place = locations_.of(requirement.node).place;
      if (place.known()) text += fmt::format(" at {}:{}", escape_for_display(place.file, 2000), place.line);
      text += '\n';
    }
    return text + summary();
  }

  /// False as well where the texts, which are made by now, were cut off.
  bool has_all() const { return contract_.has_all() && !analysis_.meter().is_spent(); }

  Json requirements() {
    Json array = Json::array();
    for (const Requirement& requirement : contract_.requirements) array.push_back(json_of(requirement));
    return array;
  }

 private:
  std::string summary() const {
    if (!contract_.has_sizes)
      return "no sizes were found with which the model runs: nothing is known of its contract\n";
    if (!contract_.is_complete || analysis_.meter().is_spent())
      return "incomplete: the model is too large to try all of its inputs\n";
    if (contract_.depends_on_elements)
      return "incomplete: elements of an input decide extents, and which of them run was not tried\n";
    if (contract_.requirements.empty()) return "no requirement: inputs of the declared types run\n";
    return {};
  }

  /// "batch == batch_1", "sequence <= 512", "height % 14 == 0", "0 <= ids < 30522", "0 <= lengths <= steps".
  std::string line_of(const Requirement& requirement) const {
    if (requirement.kind == RequirementKind::kRange) {
      const std::string_view input = model_.name_of(requirement.elements_of);
      std::string name = escape_for_display(input, 200);
      if (axis_names_.contains(input)) name += "[...]";  // an axis has that name, too
      const std::string least = requirement.least ? dim_text(*requirement.least) + " <= " : "";
      if (!requirement.most) return least + name;
      if (pool_.is_symbol(*requirement.most))
        return fmt::format("{}{} <= {}", least, name, dim_text(*requirement.most));
      return fmt::format("{}{} < {}", least, name, dim_text(pool_.add(*requirement.most, pool_.constant(1))));
    }
    const std::string subject = dim_text(requirement.subject);
    switch (requirement.kind) {
      case RequirementKind::kEqual:
        return fmt::format("{} == {}", subject, dim_text(requirement.equals));
      case RequirementKind::kDivisor:
        if (pool_.is_symbol(requirement.subject)) return fmt::format("{} % {} == 0", subject, requirement.divisor);
        return fmt::format("({}) % {} == 0", subject, requirement.divisor);
      default:
        break;
    }
    if (!requirement.least) return fmt::format("{} <= {}", subject, dim_text(*requirement.most));
    if (!requirement.most) return fmt::format("{} >= {}", subject, dim_text(*requirement.least));
    return fmt::format("{} <= {} <= {}", dim_text(*requirement.least), subject, dim_text(*requirement.most));
  }

  std::string dim_text(Dim dim) const { return contract::text_of(analysis_, dim); }

  Json json_of(const Requirement& requirement) {
    Json inputs = Json::array();
    for (const ValueId input : requirement.inputs) inputs.push_back(escape_identifier(model_.name_of(input)));
    Json json = {{"text", line_of(requirement)},
                 {"kind", contract::to_text(requirement.kind)},
                 {"exact", requirement.is_exact},
                 {"inputs", std::move(inputs)},
                 {"graph", Json()},
                 {"node", Json()},
                 {"file", Json()},
                 {"line", Json()}};
    if (requirement.node == NodeId::kNone) return json;
    json["graph"] = escape_identifier(model_.graph_path(model_.node(requirement.node).graph));
    json["node"] = escape_identifier(model_.label(requirement.node));
    const findings::SourceLocation& place = locations_.of(requirement.node).place;
    if (!place.known()) return json;
    json["file"] = escape_identifier(place.file);
    json["line"] = place.line;
    return json;
  }

  const dataflow::Analysis& analysis_;
  const Model& model_;
  DimPool& pool_;
  const contract::Contract& contract_;
  findings::LocationResolver locations_;
  std::set<std::string, std::less<>> axis_names_;  ///< of inputs
};

}  // namespace

std::string contract_text(const dataflow::Analysis& analysis, const contract::Contract& contract,
                          const std::string& source_root) {
  return ContractReport(analysis, contract, source_root).lines();
}

Json requirements_json(const dataflow::Analysis& analysis, const contract::Contract& contract,
                       const std::string& source_root) {
  return ContractReport(analysis, contract, source_root).requirements();
}

std::string contract_json(const dataflow::Analysis& analysis, const contract::Contract& contract,
                          const std::string& source_root) {
  ContractReport report(analysis, contract, source_root);
  Json requirements = report.requirements();
  const Json document = {{"schema", 1},
                         {"tool", {{"name", "tensorlint"}, {"version", kVersion}}},
                         {"path", escape_identifier(analysis.model().path)},
                         {"complete", report.has_all()},
                         {"requirements", std::move(requirements)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tensorlint::reports

#include "analyzer/rules/graph/body_notes.h"

#include <fmt/format.h>

#include "base/escape.h"

namespace tensorlint::rules {
namespace {

/// "float32", "sequence"; empty where it is not known.
std::string kind_text(const dataflow::Analysis& analysis, ValueId value) {
  const Fact& fact = analysis.fact(value);
  if (fact.kind != ValueKind::kTensor) return fact.kind == ValueKind::kUnknown ? "" : std::string(to_text(fact.kind));
  return fact.dtypes.size() == 1 ? fact.dtypes.to_text() : "";
}

}  // namespace

ValueId body_output(const Model& model, const RegionOp& region, std::size_t g, std::size_t result) {
  if (region.graphs[g] == GraphId::kNone) return ValueId::kAbsent;
  return value_at(model.graph(region.graphs[g]).outputs, region.output_of_result(result));
}

bool have_other_types(const dataflow::Analysis& analysis, ValueId a, ValueId b) {
  if (a == ValueId::kAbsent || b == ValueId::kAbsent) return false;
  const std::string x = kind_text(analysis, a), y = kind_text(analysis, b);
  return !x.empty() && !y.empty() && x != y;
}

void note_body_output(FindingBuilder& finding, const dataflow::Analysis& analysis, const RegionOp& region,
                      std::size_t g, ValueId output) {
  const std::string what = output == ValueId::kAbsent ? std::string() : kind_text(analysis, output);
  if (what.empty()) return;
  const Model& model = analysis.model();
  const std::string_view body = graph_attribute(region.kind, g);
  const dataflow::Origin origin = dataflow::origin_of(analysis, output, Aspect::kDtype);
  const std::string given = quoted_for_people(model.name_of(output));
  const ValueId source = origin.value == ValueId::kAbsent ? output : origin.value;
  const std::string link = source == output ? given + ", which"
                                            : fmt::format("{}, which has its dtype from {}, which", given,
                                                          quoted_for_people(model.name_of(source)));
  if (origin.node != NodeId::kNone)
    finding.note_at(origin.node, fmt::format("`{}` gives {} becomes {} here", body, link, what));
  else
    finding.note(fmt::format("`{}` gives {} is {}", body, link, what));
}

}  // namespace tensorlint::rules

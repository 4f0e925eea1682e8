#include "analyzer/reports/why.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "analyzer/findings/escape.h"
#include "analyzer/findings/places.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint {
namespace {

constexpr int kMaxNodes = 40;

std::string name_of(const Model& model, ValueId value) { return fmt::format("`{}`", escape_for_people(model.name_of(value))); }

std::string_view word_for(ValueOrigin origin) {
  switch (origin) {
    case ValueOrigin::kInput: return "an input";
    case ValueOrigin::kInitializer: return "an initializer";
    case ValueOrigin::kUndefined: return "never defined";
    case ValueOrigin::kNode: break;
  }
  return "made by a node";
}

/// The fact with what `to_text` leaves out: contents and range.
std::string full_text(const Analysis& analysis, ValueId value) {
  FactStore& facts = analysis.facts();
  const Fact& fact = analysis.fact(value);
  std::string text = escape_for_people(facts.to_text(analysis.fact_id(value)));
  if (const Content* content = facts.content(fact.content); content != nullptr && content->size() <= 8) {
    std::string elements;
    for (const Dim element : content->integers) elements += (elements.empty() ? "" : ", ") + escape_for_people(facts.dims().to_text(element));
    for (const double element : content->floats) elements += fmt::format("{}{:g}", elements.empty() ? "" : ", ", element);
    text += " = {" + elements + "}";
  } else if (fact.kind == ValueKind::kTensor && !fact.range.is_everything() && !(fact.range == range_of(fact.dtypes))) {
    text += " in " + fact.range.to_text();
  }
  return text;
}

/// Reasons for unknown dims, each once.
std::string unknown_reasons(const Analysis& analysis, ValueId value) {
  const Fact& fact = analysis.fact(value);
  std::set<std::string_view> reasons;
  for (const Dim dim : analysis.facts().dims_of(fact.shape))
    if (dim.is_unknown()) reasons.insert(to_text(dim.reason()));
  return fmt::format("{}", fmt::join(reasons, "; "));
}

}  // namespace

std::string why_text(const Analysis& analysis, ValueId value) {
  const Model& model = analysis.model();
  Places places(model);
  std::string text;
  std::vector<ValueId> pending{value};
  std::set<ValueId> told{value};
  int nodes = 0;
  for (std::size_t next = 0; next < pending.size(); ++next) {
    const ValueId current = pending[next];
    const Value& self = model.value(current);
    text += fmt::format("{} is {}\n", name_of(model, current), full_text(analysis, current));
    if (const std::string reasons = unknown_reasons(analysis, current); !reasons.empty()) text += fmt::format("  a dim is not known: {}\n", reasons);
    if (analysis.taint(current) != Taint()) text += "  part of that is a guess: something it depends on failed\n";
    if (self.origin != ValueOrigin::kNode) {
      text += fmt::format("  it is {}\n", word_for(self.origin));
      continue;
    }
    if (++nodes > kMaxNodes) {
      text += fmt::format("  (the chain goes on past {} nodes)\n", kMaxNodes);
      break;
    }
    const Node& node = model.node(self.producer);
    text += fmt::format("  made by node `{}` ({})", escape_for_people(model.label(self.producer)), escape_for_people(model.text(model.op(node).name)));
    const Place& place = places.of(self.producer).place;
    text += place.known() ? fmt::format(" at {}:{}\n", escape_for_people(place.file), place.line) : "\n";
    if (!analysis.is_visited(self.producer)) text += "  no execution reaches that node\n";
    if (const std::string_view reason = analysis.reason(self.producer); !reason.empty()) text += fmt::format("  nothing better is known: {}\n", reason);
    for (const ValueId operand : model.operands(node)) {
      if (operand == ValueId::kAbsent) continue;
      if (!told.insert(operand).second) continue;
      pending.push_back(operand);
    }
  }
  const auto origin = [&](Aspect aspect, std::string_view what) {
    const Origin found = origin_of(analysis, value, aspect);
    if (found.value == value) return;
    text += fmt::format("the {} of {} began at {}", what, name_of(model, value), name_of(model, found.value));
    text += found.node == NodeId::kNone ? fmt::format(", {}\n", word_for(model.value(found.value).origin))
                                        : fmt::format(", made by node `{}`\n", escape_for_people(model.label(found.node)));
  };
  origin(Aspect::kDtype, "dtype");
  origin(Aspect::kShape, "shape");
  return text;
}

}  // namespace tensorlint

#include "analyzer/rules/rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "analyzer/findings/escape.h"
#include "analyzer/rules/causes.h"

namespace tensorlint {
namespace {

/// Messages are longer than names, and hold some that are shortened already.
constexpr std::size_t kMessageLength = 1000;
constexpr std::size_t kShownElements = 8;

std::vector<std::unique_ptr<Rule>>& registry() {
  static std::vector<std::unique_ptr<Rule>> rules;
  return rules;
}

std::string_view origin_word(ValueOrigin origin) {
  switch (origin) {
    case ValueOrigin::kInput:
      return "input";
    case ValueOrigin::kInitializer:
      return "initializer";
    default:
      return "value";
  }
}

/// "int64", "[4, 3]", "[2] = {N, 4}", "values in [0, 9]", "the value 3"; empty where nothing is known that is worth
/// saying.
std::string aspect_text(const Analysis& analysis, ValueId value, Aspect aspect) {
  const Fact& fact = analysis.fact(value);
  switch (aspect) {
    case Aspect::kDtype:
      return fact.kind == ValueKind::kTensor && fact.dtypes.size() == 1 ? fact.dtypes.to_text() : std::string();
    case Aspect::kShape: {
      if (fact.shape == ShapeId::kUnranked) return {};
      const Content* content = analysis.facts().content(fact.content);
      std::string text = analysis.facts().shape_text(fact.shape);
      if (content == nullptr || content->integers.empty() || content->integers.size() > kShownElements) return text;
      // The elements of a small integer tensor are most often a shape themselves.
      std::vector<std::string> elements;
      for (const Dim element : content->integers) elements.push_back(analysis.facts().dims().to_text(element));
      return fmt::format("{} = {{{}}}", text, fmt::join(elements, ", "));
    }
    case Aspect::kValue: {
      if (fact.range.is_everything()) return {};
      const std::string text = fact.range.to_text();
      return fact.range.lo == fact.range.hi ? "the value " + text.substr(1, text.find(',') - 1) : "values in " + text;
    }
  }
  return {};
}

}  // namespace

std::string Operand::name() const { return quoted_for_people(analysis_->model().name_of(value_)); }

std::optional<LossKind> FailureCase::loss_kind() const {
  return loss != nullptr ? std::optional(loss->kind) : loss_named(loss_metadata);
}

std::vector<Operand> FailureCase::operands() const {
  std::vector<Operand> found;
  if (!has_node()) return found;
  const NodeCall node = call();
  for (const int index : failure().operands) {
    if (index < 0) continue;
    const Operand operand = node.operand(static_cast<std::size_t>(index));
    if (operand.present()) found.push_back(operand);
  }
  return found;
}

std::string FailureCase::message() const {
  const std::string_view text = failure().message;
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t open = text.find('{', at);
    out += text.substr(at, open - at);
    if (open == std::string_view::npos) break;
    const std::size_t close = text.find('}', open);
    std::string_view inside =
        close == std::string_view::npos ? std::string_view() : text.substr(open + 1, close - open - 1);
    const bool is_result = inside.starts_with('r');
    if (is_result) inside.remove_prefix(1);
    std::size_t index = 0;
    const auto [end, error] = std::from_chars(inside.data(), inside.data() + inside.size(), index);
    if (inside.empty() || error != std::errc() || end != inside.data() + inside.size() || !has_node()) {
      out += '{';  // a brace of the input's own
      at = open + 1;
      continue;
    }
    const ValueId value = is_result ? call().result(index) : call().operand(index).value();
    out += value == ValueId::kAbsent ? fmt::format("{} {}", is_result ? "result" : "operand", index)
                                     : quoted_for_people(model().name_of(value));
    at = close + 1;
  }
  return escape_for_people(out, kMessageLength);
}

FindingBuilder& FindingBuilder::certainty(Certainty certainty, std::string_view witness) {
  if (finding_ != nullptr) {
    finding_->certainty = certainty;
    finding_->witness = witness;
  }
  return *this;
}

FindingBuilder& FindingBuilder::devices(DeviceWitness witness) {
  if (finding_ != nullptr) finding_->devices = std::move(witness);
  return *this;
}

FindingBuilder& FindingBuilder::cost(TransferCost cost) {
  if (finding_ != nullptr) finding_->cost = std::move(cost);
  return *this;
}

FindingBuilder& FindingBuilder::cause(std::string key) {
  reporter_.note_cause(key);
  if (finding_ != nullptr) finding_->causes.push_back(std::move(key));
  return *this;
}

FindingBuilder& FindingBuilder::value(ValueId value) {
  if (finding_ != nullptr && value != ValueId::kAbsent) finding_->value = reporter_.analysis().model().name_of(value);
  return *this;
}

FindingBuilder& FindingBuilder::place(SourceLocation place) {
  if (finding_ != nullptr && place.known()) finding_->place = std::move(place);
  return *this;
}

FindingBuilder& FindingBuilder::note(std::string message) {
  if (finding_ != nullptr) finding_->notes.push_back({.message = std::move(message), .node = {}, .place = {}});
  return *this;
}

FindingBuilder& FindingBuilder::note_at(NodeId node, std::string message) {
  if (finding_ == nullptr) return *this;
  finding_->notes.push_back({.message = std::move(message),
                             .node = reporter_.analysis().model().label(node),
                             .place = reporter_.locations().of(node).place});
  return *this;
}

FindingBuilder& FindingBuilder::origin(const Operand& operand, Aspect aspect) {
  if (finding_ == nullptr || !operand.present()) return *this;
  const Analysis& analysis = reporter_.analysis();
  const Origin origin = origin_of(analysis, operand.value(), aspect);
  const ValueId source = origin.value == ValueId::kAbsent ? operand.value() : origin.value;
  const std::string what = aspect_text(analysis, source, aspect);
  if (what.empty()) return *this;
  const std::string name = quoted_for_people(analysis.model().name_of(source));
  if (origin.node != NodeId::kNone)
    return note_at(origin.node,
                   fmt::format("{} {} {} here", name, aspect == Aspect::kValue ? "gets" : "becomes", what));
  const std::string_view verb = aspect == Aspect::kValue ? "has" : "is";
  finding_->notes.push_back(
      {.message = fmt::format("{} {} {} {}", origin_word(analysis.model().value(source).origin), name, verb, what),
       .node = {},
       .place = reporter_.locations().of_value(source)});
  return *this;
}

FindingBuilder& FindingBuilder::fix(std::string message, Applicability applicability, std::vector<GraphEdit> edits) {
  if (finding_ != nullptr) finding_->fixes.push_back({std::move(message), applicability, std::move(edits)});
  return *this;
}

Finding* Reporter::add(Severity severity, GraphId graph) {
  if (const auto chosen = severities_(rule_->code)) severity = *chosen;
  if (per_rule_[rule_->code]++ >= limit_) {
    ++omitted_[severity];
    last_ = nullptr;
    last_is_omitted_ = true;
    last_severity_ = severity;
    return nullptr;
  }
  Finding& finding = findings_.emplace_back();
  last_ = &finding;
  last_is_omitted_ = false;
  last_severity_ = severity;
  finding.rule = rule_->name;
  finding.code = rule_->code;
  finding.severity = severity;
  finding.path = analysis_.model().path;
  finding.graph = analysis_.model().graph_path(graph);
  finding.order = ~std::uint64_t{0};
  return &finding;
}

void Reporter::note_cause(const std::string& key) {
  const bool is_known = !causes_.insert(fmt::format("{} {} {}", rule_->code, to_text(last_severity_), key)).second;
  if (!is_known || !last_is_omitted_) return;
  last_is_omitted_ = false;
  --omitted_[last_severity_];
  ++omitted_places_;
}

FindingBuilder Reporter::report(Severity severity, NodeId node, std::string message) {
  const Model& model = analysis_.model();
  Finding* finding = add(severity, node == NodeId::kNone ? GraphId::kMain : model.node(node).graph);
  if (finding == nullptr) return {finding, *this};
  finding->message = std::move(message);
  if (node == NodeId::kNone) return {finding, *this};
  const Node& at = model.node(node);
  finding->node = model.label(node);
  finding->op = model.text(model.op(at).name);
  finding->order = static_cast<std::uint64_t>(node);
  for (const ValueId result : model.results(at)) {
    if (result == ValueId::kAbsent) continue;
    finding->value = model.name_of(result);
    break;
  }
  const LocationResolver::NodeLocation& found = places_.of(node);
  finding->place = found.place;
  finding->module = found.module;
  return {finding, *this};
}

FindingBuilder Reporter::report_value(ValueId value, std::string message) {
  const Value& known = analysis_.model().value(value);
  if (known.producer != NodeId::kNone) return report(known.producer, std::move(message)).value(value);
  return report_graph(known.graph, std::move(message)).value(value).place(places_.of_value(value));
}

FindingBuilder Reporter::report_graph(Severity severity, GraphId graph, std::string message) {
  Finding* finding = add(severity, graph);
  if (finding != nullptr) finding->message = std::move(message);
  return {finding, *this};
}

bool Reporter::first(std::string_view key) { return seen_.insert(fmt::format("{} {}", rule_->code, key)).second; }

std::vector<Finding> Reporter::take() {
  std::vector<Finding> findings(std::make_move_iterator(findings_.begin()), std::make_move_iterator(findings_.end()));
  findings_.clear();
  last_ = nullptr;
  return findings;
}

int Rule::claim(const FailureCase&) const { return 0; }

void Rule::report(const FailureCase& failure, Reporter& out) const { word(failure, failure.message(), out); }

bool Rule::wants(std::string_view, std::string_view, const OpEntry*) const { return false; }
void Rule::check(const NodeCall&, Reporter&) const {}
void Rule::check_model(ModelView&, Reporter&) const {}

FindingBuilder Rule::word(const FailureCase& failure, std::string message, Reporter& out,
                          std::optional<Severity> severity) const {
  FindingBuilder finding = out.report(severity.value_or(info_.severity), failure.at.node, std::move(message));
  finding.certainty(failure.failure().certainty, failure.failure().witness);
  Aspect aspect = aspect_of(failure.kind());
  // Of what is indexed not the contents matter: how long it is.
  const bool is_index = failure.kind() == ConstraintKind::kIndexRange || failure.kind() == ConstraintKind::kClassRange;
  std::vector<ValueId> said;
  for (const Operand& operand : failure.operands()) {
    if (std::find(said.begin(), said.end(), operand.value()) != said.end()) continue;
    if (is_index && !said.empty()) aspect = Aspect::kShape;
    finding.origin(operand, aspect);
    said.push_back(operand.value());
  }
  if (failure.at.iteration > 1) finding.note(fmt::format("from iteration {} on", failure.at.iteration));
  for (const NodeId caller : failure.at.calls) finding.note_at(caller, "called from here");
  for (std::string& cause : causes_of(failure)) finding.cause(std::move(cause));
  return finding;
}

void detail::register_rule(std::unique_ptr<Rule> rule) { registry().push_back(std::move(rule)); }

std::span<const Rule* const> all_rules() {
  // Sorted once, after all static initialisers ran.
  static const std::vector<const Rule*> sorted = [] {
    std::vector<const Rule*> rules;
    for (const std::unique_ptr<Rule>& rule : registry()) rules.push_back(rule.get());
    std::sort(rules.begin(), rules.end(), [](const Rule* a, const Rule* b) { return a->info().code < b->info().code; });
    return rules;
  }();
  return sorted;
}

const Rule* find_rule(std::string_view name_or_code) {
  for (const Rule* rule : all_rules())
    if (rule->info().name == name_or_code || rule->info().code == name_or_code) return rule;
  return nullptr;
}

}  // namespace tensorlint

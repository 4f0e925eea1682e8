#include "analyzer/rules/rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "analyzer/findings/kept.h"
#include "analyzer/findings/violation_text.h"
#include "analyzer/rules/causes.h"
#include "base/escape.h"
#include "passes/dataflow/origins.h"

namespace tensorlint::rules {
namespace {

constexpr std::size_t kShownElements = 8;
/// Calls that are named at either end of a chain.
constexpr std::size_t kShownCalls = 8;
/// Of a line of a program in a note: as long as a name of a file or a line of code that LocationResolver keeps.
constexpr std::size_t kKeptOfFile = 4096, kKeptOfLine = 2 * kShownLength;
using findings::kept;

/// In place: what fits is not copied.
void cut(std::string& text) {
  if (text.size() > findings::kKeptOfText) text = kept(text, findings::kKeptOfText);
}

/// Takes account of what a finding keeps, until the report is written.
void keep(const Reporter& out, std::size_t bytes) { out.analysis().meter().keep(bytes); }

/// All notes of findings come here.
void add_note(findings::Finding& finding, const Reporter& out, findings::Note note) {
  cut(note.message);
  keep(out, memory_of(note));
  finding.notes.push_back(std::move(note));
}

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

/// "int64", "[4, 3]", "[2] = {N, 4}", "a scalar", "the scalar 3", "values in [0, 9]", "the value 3"; empty where
/// nothing is known that is worth saying.
std::string aspect_text(const dataflow::Analysis& analysis, ValueId value, Aspect aspect) {
  const Fact& fact = analysis.fact(value);
  switch (aspect) {
    case Aspect::kDtype:
      return fact.kind == ValueKind::kTensor && fact.dtypes.size() == 1 ? fact.dtypes.to_text() : std::string();
    case Aspect::kShape: {
      if (fact.shape == ShapeId::kUnranked) return {};
      const Content* content = analysis.content(value);
      const bool is_scalar = fact.kind == ValueKind::kTensor && analysis.facts().dims_of(fact.shape).empty();
      std::string text = is_scalar ? "a scalar" : analysis.facts().shape_text(fact.shape);
      if (content == nullptr || content->integers.empty() || content->integers.size() > kShownElements) return text;
      // The elements of a small integer tensor are most often a shape themselves.
      std::vector<std::string> elements;
      for (const Dim element : content->integers) elements.push_back(analysis.facts().dims().to_text(element));
      if (is_scalar) return "the scalar " + elements.front();
      return fmt::format("{} = {{{}}}", text, fmt::join(elements, ", "));
    }
    case Aspect::kValue: {
      if (fact.range.is_everything()) return {};
      return fact.range.lo == fact.range.hi ? "the value " + bound_text(fact.range.lo)
                                            : "values in " + fact.range.to_text();
    }
  }
  return {};
}

std::string_view aspect_word(Aspect aspect) {
  return aspect == Aspect::kDtype ? "dtype" : aspect == Aspect::kShape ? "shape" : "values";
}

/// A name of an extent that an exporter made up, which tells its reader nothing: `s77` and `u0` of torch.export,
/// `unk__214` of tf2onnx, `p2o.DynamicDimension.1` of paddle2onnx.
bool is_made_up(std::string_view symbol) {
  const std::size_t end = symbol.find_last_not_of("0123456789");
  if (end == std::string_view::npos || end + 1 == symbol.size()) return false;
  const std::string_view stem = symbol.substr(0, end + 1);
  return stem == "s" || stem == "u" || stem == "unk__" || stem.ends_with("DynamicDimension.");
}

/// "s77 is axis 0 of `x`", once a finding, of the extents that the exporter has named.
void explain_symbols(const Reporter& out, const Fact& fact, std::vector<Dim>& explained, findings::Finding& finding) {
  const dataflow::Analysis& analysis = out.analysis();
  constexpr std::size_t kMaxExplained = 4;
  FactStore& facts = analysis.facts();
  const DimPool& pool = facts.dims();
  if (fact.kind != ValueKind::kTensor || fact.shape == ShapeId::kUnranked) return;
  std::vector<Dim> symbols;
  for (const Dim dim : facts.dims_of(fact.shape)) {
    if (symbols.size() == kMaxExplained || analysis.meter().is_spent()) break;
    for (const Dim symbol : pool.symbols(dim))
      if (symbols.size() < kMaxExplained && std::ranges::find(symbols, symbol) == symbols.end())
        symbols.push_back(symbol);
  }
  for (const Dim symbol : symbols) {
    if (!is_made_up(pool.to_text(symbol)) || std::ranges::find(explained, symbol) != explained.end()) continue;
    explained.push_back(symbol);
    for (const ValueId input : analysis.inputs(GraphId::kMain)) {
      if (input == ValueId::kAbsent || analysis.fact(input).kind != ValueKind::kTensor ||
          analysis.fact(input).shape == ShapeId::kUnranked)
        continue;
      const auto dims = facts.dims_of(analysis.fact(input).shape);
      analysis.meter().charge(1 + dims.size() / 4);
      const auto at = std::find(dims.begin(), dims.end(), symbol);
      if (at == dims.end()) continue;
      add_note(
          finding, out,
          {.message = escape_for_display(fmt::format("{} is axis {} of {}", pool.to_text(symbol), at - dims.begin(),
                                                     quoted_for_people(analysis.model().name_of(input)))),
           .node = {},
           .place = {}});
      break;
    }
  }
}

bool is_torch(std::string_view file) {
  return file.starts_with("torch/") || file.find("/torch/") != std::string_view::npos;
}

/// The library code that a line of the user's own calls and that the operation is in: the innermost frame below the
/// user's, that of another library than PyTorch where there is one. Null where the user wrote the operation itself.
const findings::StackFrame* library_frame(const std::vector<findings::StackFrame>& frames) {
  const findings::StackFrame* own = findings::users_frame(frames);
  if (own == nullptr || own == &frames.back()) return nullptr;
  const findings::StackFrame* found = nullptr;
  for (const findings::StackFrame* frame = own + 1; frame <= &frames.back(); ++frame) {
    // What PyTorch calls modules, traces and exports with is in every trace.
    const bool is_machinery = frame->file.starts_with('<') || frame->file.ends_with("torch/nn/modules/module.py") ||
                              (is_torch(frame->file) && frame->file.find("torch/nn/") == std::string_view::npos);
    if (!is_machinery && (found == nullptr || !is_torch(frame->file) || is_torch(found->file))) found = frame;
  }
  return found;
}

/// The user's own line that calls the user's own function that the operation is in; null where no such line is known.
const findings::StackFrame* calling_frame(const std::vector<findings::StackFrame>& frames) {
  const findings::StackFrame* own = findings::users_frame(frames);
  if (own == nullptr || own == frames.data() || findings::is_library_file(own->file)) return nullptr;
  return findings::is_library_file(own[-1].file) ? nullptr : own - 1;
}

/// The lines of a program around a node's own one, of each node once: a thousand findings may be about one node.
struct LinesAround {
  explicit LinesAround(const dataflow::Analysis& /*analysis*/) {}
  struct Lines {
    findings::SourceLocation library, caller;  // not known: none
  };
  std::map<NodeId, Lines> of_nodes;
};

findings::SourceLocation location_of(const findings::StackFrame* frame) {
  if (frame == nullptr) return {};
  return {.file = kept(frame->file, kKeptOfFile),
          .line = frame->line,
          .column = 0,
          .source = kept(frame->source, kKeptOfLine)};
}

const LinesAround::Lines& lines_around(Reporter& out, NodeId node) {
  const auto [known, added] = out.shared<LinesAround>().of_nodes.try_emplace(node);
  if (added) {
    const std::vector<findings::StackFrame> frames = out.locations().frames(node);
    known->second = {.library = location_of(library_frame(frames)), .caller = location_of(calling_frame(frames))};
    keep(out, sizeof(*known) + memory_of(known->second.library) + memory_of(known->second.caller));
  }
  return known->second;
}

/// Where what a node gives is first used, by a node whose line is known: exporters write none for what runs without
/// gradients.
findings::SourceLocation place_of_use(const dataflow::Analysis& analysis, findings::LocationResolver& places,
                                      NodeId node) {
  constexpr int kMaxSteps = 16;
  for (int step = 0; step < kMaxSteps; ++step) {
    const auto results = analysis.results(node);
    if (results.empty() || results[0] == ValueId::kAbsent) break;
    const auto users = analysis.users(results[0]);
    if (users.empty()) break;
    node = users.front();
    if (const auto& found = places.of(node); found.place.known()) return found.place;
  }
  return {};
}

}  // namespace

std::string Operand::name() const { return quoted_for_people(analysis_->model().name_of(value_)); }

std::optional<ops::LossKind> ViolationCase::loss_kind() const {
  return loss != nullptr ? std::optional(loss->kind) : named_loss;
}

std::vector<Operand> ViolationCase::operands() const {
  std::vector<Operand> found;
  if (!has_node()) return found;
  const NodeCall node = call();
  for (const int index : at.operands) {
    if (index < 0) continue;
    const Operand operand = node.operand(static_cast<std::size_t>(index));
    if (operand.present()) found.push_back(operand);
  }
  return found;
}

std::string ViolationCase::message() const { return findings::violation_text(analysis, at); }

FindingBuilder& FindingBuilder::message(std::string message) {
  if (finding_ == nullptr) return *this;
  cut(message);
  keep(reporter_, message.size());
  finding_->message = std::move(message);
  return *this;
}

FindingBuilder& FindingBuilder::certainty(ops::Certainty certainty, std::string_view witness) {
  if (finding_ != nullptr) {
    finding_->certainty = certainty;
    finding_->witness = kept(witness, findings::kKeptOfText);
    keep(reporter_, finding_->witness.size());
  }
  return *this;
}

FindingBuilder& FindingBuilder::devices(findings::DeviceWitness witness) {
  if (finding_ == nullptr) return *this;
  std::size_t bytes = 0;
  for (const auto& [name, holds] : witness.conditions) bytes += sizeof name + name.size();
  for (const auto& [name, count] : witness.trip_counts) bytes += sizeof name + name.size();
  for (const auto* names : {&witness.devices, &witness.calls})
    for (const std::string& name : *names) bytes += sizeof name + name.size();
  keep(reporter_, bytes);
  finding_->devices = std::move(witness);
  return *this;
}

FindingBuilder& FindingBuilder::cost(findings::TransferCost cost) {
  if (finding_ == nullptr) return *this;
  std::size_t bytes = cost.bytes.size() + cost.setup_bytes.size();
  for (const auto& [name, holds] : cost.conditions) bytes += sizeof name + name.size();
  keep(reporter_, bytes);
  finding_->cost = std::move(cost);
  return *this;
}

FindingBuilder& FindingBuilder::cause(std::string key) {
  if (reporter_.is_cut_off()) return *this;
  reporter_.analysis().meter().charge(1 + key.size() / 4);
  key = short_key(std::move(key));
  reporter_.note_cause(key);
  if (finding_ == nullptr) return *this;
  keep(reporter_, sizeof key + key.size());
  finding_->causes.push_back(std::move(key));
  return *this;
}

FindingBuilder& FindingBuilder::value(ValueId value) {
  if (finding_ != nullptr && value != ValueId::kAbsent)
    finding_->value = kept(reporter_.analysis().model().name_of(value));
  return *this;
}

FindingBuilder& FindingBuilder::place(findings::SourceLocation place) {
  if (finding_ == nullptr || !place.known()) return *this;
  keep(reporter_, memory_of(place));
  finding_->place = std::move(place);
  return *this;
}

FindingBuilder& FindingBuilder::note(std::string message) {
  if (reporter_.is_cut_off()) return *this;
  reporter_.charge(message.size());
  if (finding_ != nullptr) add_note(*finding_, reporter_, {.message = std::move(message), .node = {}, .place = {}});
  return *this;
}

FindingBuilder& FindingBuilder::note_at(NodeId node, std::string message) {
  // What no node computes has no place.
  if (finding_ == nullptr || node == NodeId::kNone || reporter_.is_cut_off()) return *this;
  reporter_.charge(message.size());
  add_note(*finding_, reporter_,
           {.message = std::move(message),
            .node = kept(reporter_.analysis().model().label(node)),
            .place = reporter_.locations().of(node).place});
  return *this;
}

FindingBuilder& FindingBuilder::calls(std::span<const NodeId> calls) {
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (i == kShownCalls && calls.size() > 2 * kShownCalls) {
      note(fmt::format("through {} more calls", calls.size() - 2 * kShownCalls));
      i = calls.size() - kShownCalls;
    }
    note_at(calls[i], "called from here");
  }
  return *this;
}

FindingBuilder& FindingBuilder::origin(const Operand& operand, Aspect aspect) {
  if (finding_ == nullptr || !operand.present()) return *this;
  const dataflow::Analysis& analysis = reporter_.analysis();
  const dataflow::Origin origin = reporter_.shared<dataflow::Origins>().of(operand.value(), aspect);
  if (reporter_.is_cut_off()) return *this;
  const ValueId source = origin.value == ValueId::kAbsent ? operand.value() : origin.value;
  const std::string what = aspect_text(analysis, source, aspect);
  if (what.empty()) return *this;
  std::string name = quoted_for_people(analysis.model().name_of(source));
  if (origin.node == NodeId::kNone)
    name = fmt::format("{} {}", origin_word(analysis.model().value(source).origin), name);
  const findings::SourceLocation place = reporter_.locations().of_value(source);
  // An input has no line of its own: the one where the operand is computed of it.
  const NodeId made =
      origin.node == NodeId::kNone && !place.known() ? analysis.model().value(operand.value()).producer : NodeId::kNone;
  // Where the value that the message names only hands on what another one began with.
  if (source != operand.value())
    name = fmt::format("{} gets its {}{} from {}, which", operand.name(), aspect_word(aspect),
                       made == NodeId::kNone ? "" : " here,", name);
  if (aspect == Aspect::kShape && origin.node != NodeId::kNone)
    explain_symbols(reporter_, operand.fact(), reporter_.explained_, *finding_);
  if (origin.node != NodeId::kNone)
    return note_at(origin.node,
                   fmt::format("{} {} {} here", name, aspect == Aspect::kValue ? "gets" : "becomes", what));
  const std::string_view verb = aspect == Aspect::kValue ? "has" : "is";
  std::string message = fmt::format("{} {} {}", name, verb, what);
  if (made != NodeId::kNone) return note_at(made, std::move(message));
  add_note(*finding_, reporter_, {.message = std::move(message), .node = {}, .place = place});
  return *this;
}

FindingBuilder& FindingBuilder::fix(std::string message, findings::Applicability applicability,
                                    std::vector<GraphEdit> edits) {
  if (reporter_.is_cut_off()) return *this;
  reporter_.charge(message.size() + Reporter::kStepsPerText * edits.size());
  if (finding_ == nullptr) return *this;
  cut(message);
  std::size_t names = 0;
  for (const GraphEdit& edit : edits) names += bytes_of(edit) - sizeof edit;
  if (names > kMaxEditBytes) {
    edits = {};
    names = 0;
  }
  keep(reporter_, sizeof(findings::Fix) + message.size() + names + edits.size() * sizeof(GraphEdit));
  finding_->fixes.push_back({std::move(message), applicability, std::move(edits)});
  return *this;
}

findings::Finding* Reporter::add(findings::Severity severity, GraphId graph) {
  if (is_cut_off()) {
    last_ = nullptr;
    last_is_omitted_ = false;
    return nullptr;
  }
  severity = severities_(rule_->code).value_or(std::min(severity, most_));
  if (per_rule_[rule_->code]++ >= limit_) {
    ++omitted_[severity];
    last_ = nullptr;
    last_is_omitted_ = true;
    last_severity_ = severity;
    return nullptr;
  }
  charge(0);
  findings::Finding& finding = findings_.emplace_back();
  last_ = &finding;
  explained_.clear();
  last_is_omitted_ = false;
  last_severity_ = severity;
  finding.rule = rule_->name;
  finding.code = rule_->code;
  finding.severity = severity;
  finding.path = analysis_.model().path;
  finding.graph = kept(analysis_.model().graph_path(graph));
  finding.order = ~std::uint64_t{0};
  // Each is there twice while `take` moves them.
  keep(*this, 2 * sizeof finding + finding.path.size() + finding.graph.size());
  return &finding;
}

void Reporter::note_cause(const std::string& key) {
  const auto [kept_key, is_new] =
      causes_.insert(fmt::format("{} {} {}", rule_->code, findings::to_text(last_severity_), key));
  if (is_new) keep(*this, sizeof *kept_key + kept_key->size());
  if (is_new || !last_is_omitted_) return;
  last_is_omitted_ = false;
  --omitted_[last_severity_];
  ++omitted_places_;
}

FindingBuilder Reporter::report(findings::Severity severity, NodeId node, std::string message) {
  const Model& model = analysis_.model();
  findings::Finding* finding = add(severity, node == NodeId::kNone ? GraphId::kMain : model.node(node).graph);
  if (finding == nullptr) return {finding, *this};
  charge(message.size());
  cut(message);
  finding->message = std::move(message);
  keep(*this, finding->message.size());
  if (node == NodeId::kNone) return {finding, *this};
  const Node& at = model.node(node);
  finding->node = kept(model.label(node));
  finding->op = kept(model.text(model.op(at).name));
  finding->order = static_cast<std::uint64_t>(node);
  // By index, so that the finding that spends the meter names its value, too.
  const auto results = analysis_.results(node);
  for (std::size_t i = 0; i < results.size() && finding->value.empty(); ++i)
    if (results[i] != ValueId::kAbsent) finding->value = kept(model.name_of(results[i]));
  const findings::LocationResolver::NodeLocation& found = places_.of(node);
  finding->place = found.place.known() ? found.place : place_of_use(analysis_, places_, node);
  finding->module = found.module;
  keep(*this, finding->node.size() + finding->op.size() + finding->value.size() + finding->module.size() +
                  memory_of(finding->place));
  const LinesAround::Lines& lines = lines_around(*this, node);
  if (lines.library.known())
    add_note(*finding, *this,
             {.message = "in this library code, called from the line above", .node = {}, .place = lines.library});
  if (lines.caller.known())
    add_note(*finding, *this, {.message = "called from here", .node = {}, .place = lines.caller});
  return {finding, *this};
}

FindingBuilder Reporter::report_value(ValueId value, std::string message) {
  const Value& known = analysis_.model().value(value);
  if (known.producer != NodeId::kNone) return report(known.producer, std::move(message)).value(value);
  FindingBuilder finding = report_graph(known.graph, std::move(message)).value(value);
  if (finding) finding.place(places_.of_value(value));
  return finding;
}

FindingBuilder Reporter::report_graph(findings::Severity severity, GraphId graph, std::string message) {
  findings::Finding* finding = add(severity, graph);
  if (finding == nullptr) return {finding, *this};
  charge(message.size());
  cut(message);
  finding->message = std::move(message);
  keep(*this, finding->message.size());
  return {finding, *this};
}

void Reporter::count(const dataflow::NodeViolation& violation) {
  const bool fails = violation.certainty == ops::Certainty::kMust && !ops::is_about_declared_shape(violation.kind());
  ++omitted_[fails ? findings::Severity::kError : findings::Severity::kWarning];
}

bool Reporter::first(std::string_view key) { return seen_.insert(fmt::format("{} {}", rule_->code, key)).second; }

std::vector<findings::Finding> Reporter::take() {
  std::vector<findings::Finding> findings(std::make_move_iterator(findings_.begin()),
                                          std::make_move_iterator(findings_.end()));
  findings_.clear();
  last_ = nullptr;
  shared_.clear();  // a model that grows has other facts next time
  return findings;
}

Specificity Rule::match(const ViolationCase&) const { return Specificity::kNone; }

void Rule::report(const ViolationCase& violation, Reporter& out) const { report_violation(violation, out); }

bool Rule::wants(std::string_view, std::string_view, const ops::OpEntry*) const { return false; }
void Rule::check(const NodeCall&, Reporter&) const {}
void Rule::check_loss(const dataflow::Analysis&, const losses::LossSite&, Reporter&) const {}
void Rule::check_model(const ModelView&, Reporter&) const {}

void ModelView::undeclared(passes::Pass pass) {
  throw std::logic_error(
      fmt::format("a rule reads the result of the pass `{}` and does not say that it needs it", to_text(pass)));
}

FindingBuilder Rule::report_violation(const ViolationCase& violation, Reporter& out,
                                      std::optional<findings::Severity> severity) const {
  FindingBuilder finding = out.report(severity.value_or(info_.severity), violation.at.node, {});
  if (finding) {
    finding.message(violation.message());
    finding.certainty(violation.at.certainty, findings::witness_text(violation.analysis, violation.at));
  }
  Aspect aspect = ops::aspect_of(violation.kind());
  // Of what is indexed not the contents matter: how long it is.
  const bool is_index =
      violation.kind() == ops::ConstraintKind::kIndexRange || violation.kind() == ops::ConstraintKind::kClassRange;
  std::vector<ValueId> said;
  for (const Operand& operand : violation.operands()) {
    if (std::find(said.begin(), said.end(), operand.value()) != said.end()) continue;
    if (is_index && !said.empty()) aspect = Aspect::kShape;
    finding.origin(operand, aspect);
    said.push_back(operand.value());
  }
  if (violation.at.iteration > 1) finding.note(fmt::format("from iteration {} on", violation.at.iteration));
  finding.calls(violation.at.calls);
  for (std::string& cause : causes_of(violation, out.shared<dataflow::Origins>())) finding.cause(std::move(cause));
  return finding;
}

FindingBuilder Rule::report_violation(const ViolationCase& violation, std::string message, Reporter& out) const {
  return report_violation(violation, out).message(std::move(message));
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

}  // namespace tensorlint::rules

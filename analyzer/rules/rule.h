#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <typeindex>
#include <utility>
#include <vector>

#include "analyzer/findings/finding.h"
#include "analyzer/findings/source_location.h"
#include "ir/call/application.h"
#include "ir/ops/inference.h"
#include "passes/dataflow/analysis.h"
#include "passes/results/pass_results.h"

namespace tensorlint::rules {

/// Where calls come from.
enum class Door : std::uint8_t {
  kFile,       ///< a model as a file
  kBuilder,    ///< a C++ program that builds a graph
  kRecording,  ///< a program that ran
};

class Doors {
 public:
  constexpr Doors(std::initializer_list<Door> doors) {
    for (const Door door : doors) bits_ = static_cast<std::uint8_t>(bits_ | bit(door));
  }
  constexpr bool has(Door door) const { return (bits_ & bit(door)) != 0; }

 private:
  static constexpr std::uint8_t bit(Door door) { return static_cast<std::uint8_t>(1U << static_cast<unsigned>(door)); }
  std::uint8_t bits_ = 0;
};

inline constexpr Doors kAllDoors{Door::kFile, Door::kBuilder, Door::kRecording};
/// What only bytes or text can have wrong: calls that are made one by one never use a value before it is defined.
inline constexpr Doors kFilesOnly{Door::kFile};

/// What names a rule. Everything has static storage duration.
struct RuleInfo {
  std::string_view code;        ///< "TL-S201"
  std::string_view name;        ///< "reduction-axis-out-of-range"
  std::string_view group;       ///< "shape": the folder of its file and fixtures
  findings::Severity severity;  ///< by default; a finding may have another
  std::string_view summary;     ///< one line, lower case
  Doors doors = kAllDoors;      ///< whose programs can have the mistake
};

/// An operand of a node as rules see it.
class Operand {
 public:
  Operand(const dataflow::Analysis& analysis, ValueId value) : analysis_(&analysis), value_(value) {}
  ValueId value() const { return value_; }
  bool present() const { return value_ != ValueId::kAbsent; }
  const Fact& fact() const { return analysis_->fact(value_); }
  Taint taint() const { return analysis_->taint(value_); }
  /// Its name between backticks, ready for people.
  std::string name() const;
  std::string type_text() const { return analysis_->facts().to_text(analysis_->fact_id(value_)); }

 private:
  const dataflow::Analysis* analysis_;
  ValueId value_;
};

/// A node with its facts: what rules look at.
class NodeCall {
 public:
  NodeCall(const dataflow::Analysis& analysis, NodeId node)
      : analysis_(analysis), id_(node), node_(analysis.model().node(node)) {
    analysis.meter().charge(1);
  }

  const dataflow::Analysis& analysis() const { return analysis_; }
  const Model& model() const { return analysis_.model(); }
  FactStore& facts() const { return analysis_.facts(); }
  NodeId id() const { return id_; }
  const Node& node() const { return node_; }
  const Operator& op() const { return model().op(node_); }
  std::string_view op_name() const { return model().text(op().name); }
  const ops::OpEntry* entry() const { return analysis_.entry(node_); }
  bool is(ops::Opcode opcode) const { return opcode_of(entry()) == opcode; }
  bool has(ops::OpTrait trait) const { return has_trait(entry(), trait); }
  std::size_t operand_count() const { return node_.operand_count; }
  SpanWalk<ValueId> operands() const { return analysis_.operands(id_); }
  SpanWalk<ValueId> results() const { return analysis_.results(id_); }
  SpanWalk<Attribute> attributes() const { return analysis_.attributes(id_); }
  Operand operand(std::size_t index) const {
    return {analysis_, index < node_.operand_count ? analysis_.operands(id_)[index] : ValueId::kAbsent};
  }
  ValueId result(std::size_t index = 0) const {
    return index < node_.result_count ? analysis_.results(id_)[index] : ValueId::kAbsent;
  }
  const Attribute* attribute(std::string_view name) const { return analysis_.attribute(id_, name); }

 private:
  const dataflow::Analysis& analysis_;
  NodeId id_;
  const Node& node_;
};

/// A violation at a node, with what rules need to report it.
struct ViolationCase {
  const dataflow::Analysis& analysis;
  const dataflow::NodeViolation& at;
  const losses::LossSite* loss = nullptr;     ///< the loss that the node belongs to
  std::optional<ops::LossKind> named_loss{};  ///< that what the exporter wrote about the node names
  std::int64_t needed_opset =
      0;  ///< the model is written for this opset, imports an older one, and fails for that; else 0

  const Model& model() const { return analysis.model(); }
  ops::ConstraintKind kind() const { return at.kind(); }
  bool has_node() const { return at.node != NodeId::kNone; }
  NodeCall call() const { return NodeCall(analysis, at.node); }
  bool has(ops::OpTrait trait) const { return has_node() && call().has(trait); }
  /// The kind of loss that the node is part of: by operator, pattern or metadata.
  std::optional<ops::LossKind> loss_kind() const;
  /// The violation in words, with the names of its operands.
  std::string message() const;
  /// The concerned operands, the culprit first.
  std::vector<Operand> operands() const;
};

/// Names in edits may be long, and a node may have thousands of operands: a fix whose edits have names of more bytes is
/// advice.
constexpr std::size_t kMaxEditBytes = std::size_t{1} << 21;
/// That many edits with a name are as much as a fix may have: with one more it has none.
inline std::size_t most_edits_with(std::string_view name) {
  return name.empty() ? kMaxEditBytes : kMaxEditBytes / name.size();
}

class Reporter;

/// Fills in a finding; returned by Reporter, to be used at once.
class FindingBuilder {
 public:
  FindingBuilder(findings::Finding* finding, Reporter& reporter) : finding_(finding), reporter_(reporter) {}
  /// False past the cap: nothing is kept, and nothing need be made for it.
  explicit operator bool() const { return finding_ != nullptr; }
  FindingBuilder& message(std::string message);
  FindingBuilder& certainty(ops::Certainty certainty, std::string_view witness = {});
  FindingBuilder& devices(findings::DeviceWitness witness);
  FindingBuilder& cost(findings::TransferCost cost);
  /// Findings of the rule with an equal key are one mistake, and become one finding (group_by_cause).
  FindingBuilder& cause(std::string key);
  FindingBuilder& value(ValueId value);
  FindingBuilder& place(findings::SourceLocation place);
  FindingBuilder& note(std::string message);
  FindingBuilder& note_at(NodeId node, std::string message);
  /// The calls that led to the node, outermost first; of a long chain its ends.
  FindingBuilder& calls(std::span<const NodeId> calls);
  /// Where an aspect of `operand` began: "`labels` becomes int64 here"; for inputs and initializers what they are.
  FindingBuilder& origin(const Operand& operand, Aspect aspect);
  /// `edits` is what `tensorlint fix` does to the model; without them, and with more than kMaxEditBytes, the fix is
  /// advice.
  FindingBuilder& fix(std::string message, findings::Applicability applicability = findings::Applicability::kUnsafe,
                      std::vector<GraphEdit> edits = {});

 private:
  findings::Finding* finding_;  // null: past the cap
  Reporter& reporter_;
};

/// Takes the findings of one input, and charges its meter for them: where that is spent, neither findings nor causes,
/// notes and fixes of the last one are taken any more. A rule reports under its own name.
class Reporter {
 public:
  using Severities = std::function<std::optional<findings::Severity>(std::string_view code)>;

  /// `severities`: what the user made of a rule, nullopt for what the rule says. Of each rule up to `limit` findings
  /// are kept.
  Reporter(const dataflow::Analysis& analysis, findings::LocationResolver& places, Severities severities,
           std::size_t limit)
      : analysis_(analysis), places_(places), severities_(std::move(severities)), limit_(limit) {}

  /// `most`: no finding is said to be worse, but for what the user made of the rule.
  void set_rule(const RuleInfo& rule, findings::Severity most = findings::Severity::kError) {
    rule_ = &rule;
    most_ = most;
    last_ = nullptr;
  }
  FindingBuilder report(findings::Severity severity, NodeId node, std::string message);
  FindingBuilder report(NodeId node, std::string message) { return report(rule_->severity, node, std::move(message)); }
  /// About a value, at the node that makes it where there is one.
  FindingBuilder report_value(ValueId value, std::string message);
  FindingBuilder report_graph(GraphId graph, std::string message) {
    return report_graph(rule_->severity, graph, std::move(message));
  }
  FindingBuilder report_graph(findings::Severity severity, GraphId graph, std::string message);

  /// Adds to the last finding since set_rule instead of making another one.
  FindingBuilder last() { return {last_, *this}; }

  /// True for the first call of a rule with this key: what every node of an operator shares is said once.
  bool first(std::string_view key);
  /// True for the first `limit` calls of a rule: for what takes too long to do for each finding.
  bool is_among_first(std::size_t limit) { return asked_[rule_->code]++ < limit; }

  /// What rules find out of the analysis and share: made by the first that asks, for this check.
  template <typename T>
  T& shared() {
    std::shared_ptr<void>& known = shared_[std::type_index(typeid(T))];
    if (known == nullptr) known = std::make_shared<T>(analysis_);
    return *static_cast<T*>(known.get());
  }

  const dataflow::Analysis& analysis() const { return analysis_; }
  findings::LocationResolver& locations() { return places_; }
  std::vector<findings::Finding> take();
  /// A violation that is not reported any more: the input's meter is spent.
  void count(const dataflow::NodeViolation& violation);
  /// Findings past the cap of one rule, counted but not kept.
  const findings::SeverityCounts& omitted() const { return omitted_; }
  /// Places past the cap, of findings that are kept or counted as omitted.
  std::size_t omitted_places() const { return omitted_places_; }

  static constexpr std::size_t kMaxFindingsPerRule = 1000;
  /// A finding, a note, an edit: names and places are looked up, escaped and printed.
  static constexpr std::size_t kStepsPerText = 256;

 private:
  friend class FindingBuilder;
  findings::Finding* add(findings::Severity severity, GraphId graph);
  void charge(std::size_t text) const { analysis_.facts().meter().charge(kStepsPerText + text); }
  /// What a rule has just compared, and what it says of its last finding, may come of a walk that the spent meter
  /// ended: no other user of a value, another origin. Nothing more is taken.
  bool is_cut_off() const { return analysis_.meter().is_spent(); }
  /// A key of the last finding. Past the cap one that is known makes a place of what was counted as a finding.
  void note_cause(const std::string& key);

  const dataflow::Analysis& analysis_;
  findings::LocationResolver& places_;
  Severities severities_;
  std::size_t limit_;
  const RuleInfo* rule_ = nullptr;
  findings::Severity most_ = findings::Severity::kError;
  findings::Finding* last_ = nullptr;
  std::deque<findings::Finding> findings_;
  std::map<std::string_view, std::size_t> per_rule_;
  std::set<std::string> seen_;
  std::map<std::string_view, std::size_t> asked_;
  std::vector<Dim> explained_;  // symbols, in notes of the last finding
  findings::SeverityCounts omitted_;
  findings::Severity last_severity_ = findings::Severity::kInfo;
  bool last_is_omitted_ = false;  // and counted as a finding
  std::size_t omitted_places_ = 0;
  std::set<std::string> causes_;
  std::map<std::type_index, std::shared_ptr<void>> shared_;
};

/// A model and what the passes found out about it, for one rule. To read a result that the rule does not say that it
/// needs is a fault of the program: std::logic_error.
class ModelView {
 public:
  ModelView(const passes::PassResults& results, passes::PassSet needs, bool copies_at_run_time)
      : results_(results), needs_(needs), copies_at_run_time_(copies_at_run_time) {}

  const Model& model() const { return results_.model(); }
  const dataflow::Analysis& analysis() const { return results_.analysis(); }
  const std::vector<losses::LossSite>& losses() const { return of(passes::Pass::kLosses).losses(); }
  const losses::GradientReach& gradient_reach() const { return of(passes::Pass::kGradientReach).gradient_reach(); }
  const structure::Liveness& liveness() const { return of(passes::Pass::kLiveness).liveness(); }
  const structure::Cycles& cycles() const { return of(passes::Pass::kCycles).cycles(); }
  const contract::SingleSizes& single_sizes() const { return of(passes::Pass::kSingleSizes).single_sizes(); }
  const std::vector<ExternalFault>& external_data() const { return of(passes::Pass::kExternalData).external_data(); }
  /// Where values live.
  const placement::Placement& placement() const { return of(passes::Pass::kPlacement).placement(); }
  /// The runtime copies between devices; else operands on different devices are an error.
  bool copies_at_run_time() const { return copies_at_run_time_; }
  /// What that costs. Only there where the runtime copies.
  const placement::RuntimeCost& runtime_cost() const { return of(passes::Pass::kRuntimeCost).runtime_cost(); }

 private:
  const passes::PassResults& of(passes::Pass pass) const {
    if (!needs_.has(pass)) undeclared(pass);
    return results_;
  }
  [[noreturn]] static void undeclared(passes::Pass pass);

  const passes::PassResults& results_;
  passes::PassSet needs_;
  bool copies_at_run_time_;
};

/// How well a rule fits a violation; the rule of its kind, one that knows the operator, one that knows that the
/// operator is part of a loss, one that knows what the mistake is.
enum class Specificity : std::uint8_t { kNone, kGeneric, kForOperator, kForLoss, kMostSpecific };

/// A rule is one file; it registers itself with RegisterRule. Of the kinds of checks a rule overrides what it needs. In
/// a model that grows call by call, match(), report() and check() run at once, with facts of the calls so far;
/// check_loss() does where one call is the whole loss. All run when the model is complete.
class Rule {
 public:
  /// `needs`: the passes whose results check_model reads, besides the analysis.
  explicit Rule(RuleInfo info, passes::PassSet needs = {}) : info_(info), needs_(needs) {}
  virtual ~Rule() = default;
  const RuleInfo& info() const { return info_; }
  passes::PassSet needs() const { return needs_; }

  /// How well the rule fits a violation. Exactly one rule reports each: the one that fits best.
  virtual Specificity match(const ViolationCase& violation) const;
  /// Default: the violation's own message, and where the concerned operands got the aspect that is wrong.
  virtual void report(const ViolationCase& violation, Reporter& out) const;

  /// Asked once per operator of a model: only calls of operators that the rule wants reach check().
  virtual bool wants(std::string_view domain, std::string_view name, const ops::OpEntry* entry) const;
  virtual void check(const NodeCall& call, Reporter& out) const;

  /// Each loss of a model; for rules that need Pass::kLosses.
  virtual void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const;

  /// What only the whole model shows: what nothing uses, what a loop or a copy costs.
  virtual void check_model(const ModelView& view, Reporter& out) const;

 protected:
  /// The finding of a violation as the default report() makes it, for rules that add to it.
  FindingBuilder report_violation(const ViolationCase& violation, Reporter& out,
                                  std::optional<findings::Severity> severity = {}) const;
  /// With a message of the rule's own.
  FindingBuilder report_violation(const ViolationCase& violation, std::string message, Reporter& out) const;

 private:
  RuleInfo info_;
  passes::PassSet needs_;
};

/// All rules, sorted by code.
std::span<const Rule* const> all_rules();
const Rule* find_rule(std::string_view name_or_code);

namespace detail {
void register_rule(std::unique_ptr<Rule> rule);
}

template <typename T>
struct RegisterRule {
  RegisterRule() { detail::register_rule(std::make_unique<T>()); }
};

/// The page of a rule (docs/rules/NAME.md), empty when there is none.
std::string_view rule_page(std::string_view name);

}  // namespace tensorlint::rules

#include "passes/dataflow/reached_values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/ops/element.h"
#include "passes/dataflow/constant_tensors.h"
#include "passes/dataflow/element_function.h"

namespace tensorlint::dataflow {
namespace {

constexpr int kLongestChain = 64;
/// Elements of a constant that are looked at: 4 MiB of int64.
constexpr std::size_t kMaxElements = std::size_t{1} << 19;
/// Operands of one function that are read.
constexpr std::size_t kMaxOperands = 16;
/// Of the meter, to evaluate one part.
constexpr std::uint64_t kStepsOfPart = 8;
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// A node with its operands; absent ones are ValueId::kAbsent.
class Call {
 public:
  Call(const Analysis& analysis, NodeId node) : analysis_(analysis), id_(node), node_(analysis.model().node(node)) {}
  NodeId id() const { return id_; }
  bool is(ops::Opcode opcode) const { return this->opcode() == opcode; }
  ops::Opcode opcode() const { return opcode_of(entry()); }
  const ops::OpEntry* entry() const { return analysis_.entry(node_); }
  bool is_in_main() const { return node_.graph == GraphId::kMain; }
  std::size_t operand_count() const { return node_.operand_count; }
  ValueId operand(std::size_t index) const {
    return index < node_.operand_count ? analysis_.model().operands(node_)[index] : ValueId::kAbsent;
  }
  bool has(std::size_t index) const { return operand(index) != ValueId::kAbsent; }
  const Fact& fact(std::size_t index) const { return analysis_.fact(operand(index)); }
  bool gives(std::size_t result, ValueId value) const {
    return result < node_.result_count && analysis_.model().results(node_)[result] == value;
  }
  const Attribute* attribute(std::string_view name) const { return analysis_.attribute(id_, name); }
  std::span<const Attribute> attributes() const { return analysis_.attributes(id_).read(); }

 private:
  const Analysis& analysis_;
  NodeId id_;
  const Node& node_;
};

bool is_number(DTypeSet dtypes) {
  const auto dtype = dtypes.single();
  return dtype && (dtype == DType::kInt32 || dtype == DType::kInt64 || DTypeSet::floats().contains(*dtype));
}

std::optional<double> single_number(const Fact& fact) {
  const Range& range = fact.range;
  const bool one = fact.kind == ValueKind::kTensor && range.lo == range.hi && std::isfinite(range.lo) && !range.nan;
  return one ? std::optional(range.lo) : std::nullopt;
}

bool is_main_input(const Analysis& analysis, ValueId value) { return analysis.model().value(value).is_given(); }

bool has_declared_range(const Fact& fact) {
  return !fact.range.is_everything() && !(fact.range == range_of(fact.dtypes));
}

/// Elements of an integer constant of the main graph, however many there are.
std::optional<std::vector<std::int64_t>> constant_elements(const Analysis& analysis, ValueId value) {
  const Model& model = analysis.model();
  const auto elements = [&](const Tensor& tensor) -> std::optional<std::vector<std::int64_t>> {
    // Weights are read here: the vector goes, the pages of the file stay.
    constexpr std::uint64_t kBytesPerElement = 16;
    Meter& meter = analysis.facts().meter();
    const std::uint64_t count = tensor.element_count().value_or(kMaxElements + 1);
    if (count > kMaxElements || meter.most_memory() + kBytesPerElement * count > meter.memory_allowed() / 2 ||
        !may_read(analysis, tensor))
      return std::nullopt;
    // Also of one that turns out to be malformed at its end.
    meter.charge(count + tensor.inline_bytes() / 4);
    auto integers = tensor.integers(kMaxElements);
    if (!integers) return std::nullopt;
    meter.keep(kBytesPerElement * integers->size());
    return integers;
  };
  if (analysis.facts().meter().is_spent()) return std::nullopt;
  for (int step = 0; step < kLongestChain; ++step) {
    const Value& known = model.value(value);
    if (known.initializer != nullptr && known.origin == ValueOrigin::kInitializer) return elements(*known.initializer);
    if (known.producer == NodeId::kNone) return std::nullopt;
    const Call call(analysis, known.producer);
    if (call.is(ops::Opcode::kConstant)) {
      const Attribute* attribute = call.attribute("value");
      return attribute != nullptr && attribute->tensor != nullptr ? elements(*attribute->tensor) : std::nullopt;
    }
    if (!keeps_elements(call.opcode()) && !call.is(ops::Opcode::kTranspose)) return std::nullopt;
    value = call.operand(0);
  }
  return std::nullopt;
}

/// Ends that a constant has among its elements; nullopt where these are not read: external, too many.
std::optional<Range> range_of_constant(const Analysis& analysis, ValueId value) {
  const Fact& fact = analysis.fact(value);
  if (has_declared_range(fact)) return fact.range;
  const auto elements = constant_elements(analysis, value);
  if (!elements || elements->empty()) return std::nullopt;
  const auto [lo, hi] = std::ranges::minmax(*elements);
  return Range{static_cast<double>(lo), static_cast<double>(hi), false};
}

/// The extent of an axis that an attribute names; nullopt where it is not known.
std::optional<std::int64_t> extent_along(const Analysis& analysis, const Call& call, std::int64_t fallback) {
  const Fact& data = call.fact(0);
  if (!call.has(0) || data.kind != ValueKind::kTensor || data.shape == ShapeId::kUnranked) return std::nullopt;
  const auto dims = analysis.facts().dims_of(data.shape);
  const Attribute* axis = call.attribute("axis");
  const auto rank = static_cast<std::int64_t>(dims.size());
  std::int64_t at = axis == nullptr ? fallback : axis->i;
  if (at < 0) at += rank;
  if (at < 0 || at >= rank) return std::nullopt;
  return analysis.facts().dims().as_constant(dims[static_cast<std::size_t>(at)]);
}

/// How many elements a reduction adds up into one.
std::optional<std::int64_t> reduced_count(const Analysis& analysis, const Call& call) {
  const Fact& data = call.fact(0);
  if (!call.has(0) || data.kind != ValueKind::kTensor || data.shape == ShapeId::kUnranked) return std::nullopt;
  const auto dims = analysis.facts().dims_of(data.shape);
  std::vector<std::int64_t> axes;
  if (const Attribute* given = call.attribute("axes")) {
    axes.assign(given->ints.begin(), given->ints.end());
  } else {
    const Content* content = call.has(1) ? analysis.facts().content(call.fact(1).content) : nullptr;
    if (content == nullptr) return std::nullopt;
    for (const Dim element : content->integers)
      if (const auto axis = analysis.facts().dims().as_constant(element)) axes.push_back(*axis);
  }
  if (axes.size() != 1) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(dims.size());
  const std::int64_t axis = axes[0] < 0 ? axes[0] + rank : axes[0];
  if (axis < 0 || axis >= rank) return std::nullopt;
  return analysis.facts().dims().as_constant(dims[static_cast<std::size_t>(axis)]);
}

/// Every element of the first result is one of operand 0.
bool passes_elements(const Call& call) {
  const ops::Opcode opcode = call.opcode();
  return picks_elements(opcode) || opcode == ops::Opcode::kTopK || opcode == ops::Opcode::kReduceMax ||
         opcode == ops::Opcode::kReduceMin;
}

/// Elements differ from one execution to the next, and no constant rules one of them out: of what is made of inputs and
/// weights by arithmetic, products and reductions.
bool varies(const Analysis& analysis, ValueId value, int& steps) {
  if (value == ValueId::kAbsent || --steps < 0) return false;
  const Fact& fact = analysis.fact(value);
  if (fact.kind != ValueKind::kTensor || !is_number(fact.dtypes)) return false;
  if (is_main_input(analysis, value)) return true;
  const NodeId producer = analysis.model().value(value).producer;
  if (producer == NodeId::kNone || !Call(analysis, producer).is_in_main()) return false;
  const Call call(analysis, producer);
  const ops::Opcode opcode = call.opcode();
  const auto first = [&] { return varies(analysis, call.operand(0), steps); };
  if (opcode == ops::Opcode::kMatMul || opcode == ops::Opcode::kConv)
    return first() || varies(analysis, call.operand(1), steps);
  if (passes_elements(call) || opcode == ops::Opcode::kSoftmax || opcode == ops::Opcode::kLogSoftmax ||
      has_trait(call.entry(), ops::OpTrait::kReduction) || opcode == ops::Opcode::kNormalize)
    return first();
  if (opcode == ops::Opcode::kCast) return call.has(0) && is_number(call.fact(0).dtypes) && first();
  const bool combines = call.entry() != nullptr && call.entry()->element() != nullptr && opcode != ops::Opcode::kWhere;
  if (!combines && opcode != ops::Opcode::kConcat) return false;
  // A large number is a mask.
  constexpr double kMask = 1e3;
  bool any = false;
  constexpr std::uint64_t kOperandsOfStep = 4;
  analysis.facts().meter().charge(call.operand_count() / kOperandsOfStep);
  for (std::size_t i = 0; i < call.operand_count(); ++i) {
    if (steps < 0 || analysis.facts().meter().is_spent()) return false;
    if (!call.has(i)) continue;
    const Range& range = call.fact(i).range;
    if (varies(analysis, call.operand(i), steps)) {
      any = true;
    } else if (analysis.model().value(call.operand(i)).producer != NodeId::kNone
                   ? !single_number(call.fact(i))
                   : std::abs(range.lo) > kMask || std::abs(range.hi) > kMask) {
      return false;
    }
  }
  return any;
}

bool varies(const Analysis& analysis, ValueId value) {
  constexpr int kMaxSteps = 256, kStepsPerValue = 8;
  int steps = kMaxSteps;
  const bool found = !analysis.facts().meter().is_spent() && varies(analysis, value, steps);
  analysis.facts().meter().charge(static_cast<std::uint64_t>(kStepsPerValue) *
                                  static_cast<std::uint64_t>(kMaxSteps - std::max(steps, 0)));
  return found;
}

/// Every residue of the modulus is one of the value's, for some input.
bool takes_any_residue(const Analysis& analysis, ValueId value, std::int64_t modulus, int& steps) {
  while (value != ValueId::kAbsent && --steps >= 0) {
    const Fact& fact = analysis.fact(value);
    if (fact.kind != ValueKind::kTensor || !is_number(fact.dtypes)) return false;
    if (is_main_input(analysis, value)) return !has_declared_range(fact);
    const NodeId producer = analysis.model().value(value).producer;
    if (producer == NodeId::kNone || !Call(analysis, producer).is_in_main()) return false;
    const Call call(analysis, producer);
    const ops::Opcode opcode = call.opcode();
    const bool is_integer = fact.dtypes.proves(DTypeSet::integers());
    std::size_t next = 0;
    if (opcode == ops::Opcode::kAdd || opcode == ops::Opcode::kSub || opcode == ops::Opcode::kMul) {
      const bool second = call.has(1) && single_number(call.fact(1)).has_value();
      next = second ? 0 : 1;
      const auto number = call.has(1 - next) ? single_number(call.fact(1 - next)) : std::nullopt;
      const bool scales = opcode == ops::Opcode::kMul;
      if (number && scales && (*number == 0 || !(std::abs(*number) < 1e15))) return false;
      if (number && scales && is_integer && std::gcd(static_cast<std::int64_t>(*number), modulus) != 1) return false;
      // A sum of two values, each of which takes any.
      if (!number && (scales || call.operand(0) == call.operand(1) ||
                      !takes_any_residue(analysis, call.operand(0), modulus, steps)))
        return false;
    } else if (opcode == ops::Opcode::kDiv) {
      const auto number = call.has(1) ? single_number(call.fact(1)) : std::nullopt;
      if (!number || *number == 0) return false;
    } else if (!moves_elements(opcode) && opcode != ops::Opcode::kNeg && opcode != ops::Opcode::kRound &&
               opcode != ops::Opcode::kCast) {
      return false;
    }
    value = call.operand(next);
  }
  return false;
}

bool takes_any_residue(const Analysis& analysis, ValueId value, double modulus) {
  constexpr int kMaxSteps = 128, kStepsPerValue = 8;
  if (!(modulus >= 1 && modulus < 1e15) || analysis.facts().meter().is_spent()) return false;
  int steps = kMaxSteps;
  const bool found = takes_any_residue(analysis, value, static_cast<std::int64_t>(modulus), steps);
  analysis.facts().meter().charge(kStepsPerValue * static_cast<std::uint64_t>(kMaxSteps - std::max(steps, 0)));
  return found;
}

/// One element of a value as an expression of elements of inputs, evaluated at sample points: what comes up whatever
/// the inputs are of the size of is what the program itself makes of them, such as the bound of a Clip, a sign, the
/// number that Where chooses or that Pad adds.
class Element {
 public:
  /// `sums`: how often a term of a sum may be a sum itself.
  Element(const Analysis& analysis, ValueId root, int sums = 2) : analysis_(analysis), sums_(sums) {
    build(root, 0);
    if (too_large_) parts_.clear();
  }

  /// Integers that some execution has among the elements.
  std::set<std::int64_t> determined();

 private:
  enum class Kind : std::uint8_t {
    kUnknown,
    kFree,      ///< any number
    kSamples,   ///< one of some numbers
    kSame,      ///< operand 0
    kChoice,    ///< one of the operands
    kInteger,   ///< operand 0 without its fraction
    kTruth,     ///< operand 0 is not 0
    kQuotient,  ///< of integers
    kRemainder,
    kFunction,  ///< of the operator
  };
  struct Part {
    Kind kind = Kind::kUnknown;
    ValueId value = ValueId::kAbsent;
    ops::Opcode opcode = ops::Opcode::kOther;
    bool is_truth = false, is_integer = false, is_constant = false;
    std::vector<double> samples{};
    ops::ElementValue function = nullptr;
    std::span<const Attribute> attributes{};
    std::vector<std::size_t> operands{};
    Range limits{};
    /// Inputs of the graph that a leaf is computed from.
    std::set<ValueId> sources{};
    bool is_of_all = false;  ///< of more than is followed
  };
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t kMaxParts = 64, kMaxCombinations = 512, kMaxLeaves = 6;
  static constexpr int kMaxDepth = 48;
  static constexpr std::int64_t kMostTerms = 100'000;

  std::size_t add(Part part) {
    if (parts_.size() >= kMaxParts) {
      too_large_ = true;
      return 0;
    }
    parts_.push_back(std::move(part));
    return parts_.size() - 1;
  }

  static std::size_t absent() { return kNone; }
  std::size_t build(ValueId value, int depth);
  void read_leaf(const Call& call, Part& part) const;
  void read_coding(const Call& call, Part& part) const;
  bool read_node(const Call& call, int depth, Part& part);
  void read_sum(const Call& call, Part& part) const;
  void read_running_sum(const Call& call, Part& part) const;
  std::vector<double> sums_at_extremes(ValueId terms, std::int64_t count) const;
  void collect_sources(Part& part) const;
  std::vector<std::size_t> leaves() const;
  /// The leaves that one evaluation may choose numbers for: no two of them come from one input.
  std::vector<std::size_t> independent_of(std::size_t first, std::span<const std::size_t> leaves) const;
  std::set<std::int64_t> reached_in(std::span<const std::size_t> chosen, int variant);
  void add_at_thresholds(std::span<const std::size_t> chosen, std::set<std::int64_t>& found);
  std::vector<double> samples_of(const Part& part, int variant) const;
  void charge_evaluation() const;
  double evaluate(bool forced);
  double evaluate_part(const Part& part);

  const Analysis& analysis_;
  int sums_;
  std::vector<Part> parts_;
  std::vector<double> values_, given_, truths_, arguments_;
  bool too_large_ = false;
};

/// Where a number that is not known decides what comes out.
std::optional<double> in_spite_of_unknown(ops::Opcode opcode, std::span<const double> operands) {
  const auto has = [&](double value) { return std::ranges::find(operands, value) != operands.end(); };
  if (opcode == ops::Opcode::kWhere && operands.size() == 3 && !std::isnan(operands[0]))
    return operands[0] != 0 ? operands[1] : operands[2];
  if (opcode == ops::Opcode::kAnd && has(0)) return 0;
  if (opcode == ops::Opcode::kOr && has(1)) return 1;
  return std::nullopt;
}

std::size_t Element::build(ValueId value, int depth) {
  if (value == ValueId::kAbsent || too_large_) return absent();
  analysis_.facts().meter().charge(kStepsOfPart + parts_.size());
  if (analysis_.facts().meter().is_spent()) {
    too_large_ = true;
    return absent();
  }
  for (std::size_t i = 0; i < parts_.size(); ++i)
    if (parts_[i].value == value) return i;
  const Fact& fact = analysis_.fact(value);
  Part part{.value = value};
  if (fact.kind != ValueKind::kTensor) return add(std::move(part));
  part.limits = range_of(fact.dtypes);
  part.is_truth = fact.dtypes.proves(DTypeSet(DType::kBool));
  part.is_integer = fact.dtypes.proves(DTypeSet::integers());
  const Value& known = analysis_.model().value(value);
  if (const auto number = single_number(fact)) {
    part.kind = Kind::kSamples;
    part.is_constant = true;
    part.samples = {*number};
    return add(std::move(part));
  }
  if (is_main_input(analysis_, value)) {
    part.sources = {value};
    if (part.is_truth) {
      part.kind = Kind::kSamples;
      part.samples = {0, 1};
    } else if (has_declared_range(fact)) {
      part.kind = Kind::kSamples;
      for (const double end : {fact.range.lo, fact.range.hi})
        if (std::isfinite(end)) part.samples.push_back(end);
    } else if (is_number(fact.dtypes)) {
      part.kind = Kind::kFree;
    }
    return add(std::move(part));
  }
  if (known.producer == NodeId::kNone || Call(analysis_, known.producer).is(ops::Opcode::kConstant)) {
    // The ends of a constant's range are elements of it; two constants need not have theirs at one place.
    if (known.initializer == nullptr && known.producer == NodeId::kNone) return add(std::move(part));
    const auto range = range_of_constant(analysis_, value);
    if (range && std::isfinite(range->lo) && std::isfinite(range->hi) && range->lo < range->hi && !range->nan) {
      part.kind = Kind::kSamples;
      part.samples = {range->lo, range->hi};
      part.sources = {ValueId::kAbsent};
    }
    return add(std::move(part));
  }
  const Call call(analysis_, known.producer);
  part.opcode = call.opcode();
  if (!call.is_in_main() || depth > kMaxDepth) return add(std::move(part));
  if (!read_node(call, depth, part)) {
    part.operands.clear();
    part.kind = Kind::kUnknown;
    read_leaf(call, part);
  }
  return add(std::move(part));
}

bool Element::read_node(const Call& call, int depth, Part& part) {
  const ops::Opcode opcode = call.opcode();
  const auto read = [&](std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) part.operands.push_back(build(call.operand(i), depth + 1));
  };
  const bool is_table =
      opcode == ops::Opcode::kGather && call.has(0) && analysis_.model().value(call.operand(0)).initializer != nullptr;
  const bool is_position = opcode == ops::Opcode::kTopK && !call.gives(0, part.value);
  if (!is_table && !is_position && passes_elements(call)) {
    part.kind = Kind::kSame;
    read(0, 1);
    return part.operands[0] != kNone;
  }
  if (is_table || !call.gives(0, part.value)) return false;
  switch (opcode) {
    case ops::Opcode::kCast:
      part.kind = part.is_truth ? Kind::kTruth : part.is_integer ? Kind::kInteger : Kind::kSame;
      read(0, 1);
      return part.operands[0] != kNone;
    case ops::Opcode::kConcat:
      part.kind = Kind::kChoice;
      read(0, std::min<std::size_t>(call.operand_count(), 8));
      return true;
    case ops::Opcode::kDiv:
      if (!part.is_integer) break;
      part.kind = Kind::kQuotient;
      read(0, 2);
      return part.operands[0] != kNone && part.operands[1] != kNone;
    case ops::Opcode::kMod: {
      const Attribute* fmod = call.attribute("fmod");
      if (!part.is_integer || (fmod != nullptr && fmod->i != 0)) return false;
      const auto modulus = single_number(call.fact(1));
      part.kind = Kind::kRemainder;
      read(0, 2);
      if (part.operands[0] == kNone || part.operands[1] == kNone) return false;
      // More residues than samples: what takes any value takes each of them.
      return !(modulus && *modulus > 8 && takes_any_residue(analysis_, call.operand(0), *modulus));
    }
    case ops::Opcode::kSign:
      if (part.is_integer) return false;  // counts are not negative
      break;
    case ops::Opcode::kMul:
      // Positions of what a mask leaves: where the last element counts, so does the mask.
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
        const NodeId sum = call.has(side) ? analysis_.model().value(call.operand(side)).producer : NodeId::kNone;
        if (sum == NodeId::kNone || !Call(analysis_, sum).is(ops::Opcode::kCumSum) ||
            Call(analysis_, sum).operand(0) != call.operand(1 - side))
          continue;
        part.kind = Kind::kSame;
        read(side, 1);
        return part.operands[0] != kNone;
      }
      break;
    default:
      break;
  }
  if (opcode == ops::Opcode::kPad) {
    const Attribute* mode = call.attribute("mode");
    const Content* pads = call.has(1) ? analysis_.facts().content(call.fact(1).content) : nullptr;
    if (mode != nullptr && mode->s != "constant") {
      part.kind = Kind::kSame;
      read(0, 1);
      return part.operands[0] != kNone;
    }
    const auto adds = [&](Dim dim) { return analysis_.facts().dims().bounds(dim).lo > 0; };
    const bool pads_some = pads != nullptr && std::ranges::any_of(pads->integers, adds);
    part.kind = pads_some && call.has(2) ? Kind::kChoice : Kind::kSame;
    read(0, 1);
    if (part.operands[0] == kNone) return false;
    if (part.kind == Kind::kChoice) read(2, 1);
    return true;
  }
  part.function = element_function(analysis_, call.id());
  if (part.function == nullptr || call.operand_count() > kMaxOperands) return false;
  part.kind = Kind::kFunction;
  part.attributes = call.attributes();
  if (std::ranges::any_of(part.attributes, [](const Attribute& each) { return !each.reference.empty(); })) return false;
  read(0, call.operand_count());
  return true;
}

void Element::collect_sources(Part& part) const {
  constexpr std::size_t kMaxValues = 256;
  constexpr std::uint64_t kStepsPerSource = 16;  // two sets take it
  std::vector<ValueId> pending{part.value};
  std::set<ValueId> seen;
  while (!pending.empty() && seen.size() < kMaxValues) {
    const ValueId at = pending.back();
    pending.pop_back();
    if (at == ValueId::kAbsent || !seen.insert(at).second) continue;
    if (is_main_input(analysis_, at)) part.sources.insert(at);
    const NodeId producer = analysis_.model().value(at).producer;
    if (producer == NodeId::kNone) continue;
    const auto operands = analysis_.model().operands(analysis_.model().node(producer));
    analysis_.facts().meter().charge(kStepsPerSource * (1 + operands.size()));
    if (analysis_.facts().meter().is_spent()) break;
    for (const ValueId operand : operands) pending.push_back(operand);
  }
  // What is computed from too much shares something with everything.
  part.is_of_all = !pending.empty();
}

/// What is not an expression of elements, and takes some numbers for certain.
void Element::read_leaf(const Call& call, Part& part) const {
  const ops::Opcode opcode = call.opcode();
  const auto positions = [&](std::int64_t fallback) {
    const auto extent = extent_along(analysis_, call, fallback);
    if (!extent || *extent < 1 || !varies(analysis_, call.operand(0))) return;
    part.kind = Kind::kSamples;
    part.samples = {0, static_cast<double>(*extent - 1)};
  };
  if (opcode == ops::Opcode::kArgExtreme) {
    positions(0);
  } else if (opcode == ops::Opcode::kTopK && call.gives(1, part.value)) {
    positions(-1);
  } else if (opcode == ops::Opcode::kMod && part.is_integer) {
    const auto modulus = single_number(call.fact(1));
    const Attribute* fmod = call.attribute("fmod");
    if (modulus && takes_any_residue(analysis_, call.operand(0), *modulus)) {
      part.kind = Kind::kSamples;
      part.samples = {fmod != nullptr && fmod->i != 0 ? *modulus - 1 : 0, *modulus - 1};
    }
  } else if (opcode == ops::Opcode::kGather && part.is_integer) {
    // Rows of a table, by an input as it is.
    ValueId index = call.operand(1);
    for (int step = 0; step < kLongestChain && index != ValueId::kAbsent; ++step) {
      const NodeId producer = analysis_.model().value(index).producer;
      if (producer == NodeId::kNone || !keeps_elements(Call(analysis_, producer).opcode())) break;
      index = Call(analysis_, producer).operand(0);
    }
    const auto rows = range_of_constant(analysis_, call.operand(0));
    if (index != ValueId::kAbsent && is_main_input(analysis_, index) && !has_declared_range(analysis_.fact(index)) &&
        rows && rows->lo <= rows->hi) {
      part.kind = Kind::kSamples;
      part.samples = {rows->lo, rows->hi};
    }
  } else if (part.is_integer && call.attribute("values_int64s") != nullptr) {
    read_coding(call, part);
  } else if (opcode == ops::Opcode::kReduceSum) {
    read_sum(call, part);
  } else if (opcode == ops::Opcode::kCumSum) {
    read_running_sum(call, part);
  } else if (opcode == ops::Opcode::kSoftmax && varies(analysis_, call.operand(0))) {
    part.kind = Kind::kSamples;
    part.samples = {1e-6, 0.5, 1 - 1e-6};
  } else if ((opcode == ops::Opcode::kMatMul || opcode == ops::Opcode::kConv || opcode == ops::Opcode::kNormalize) &&
             varies(analysis_, part.value)) {
    part.kind = Kind::kFree;
  }
  if (part.kind != Kind::kUnknown) collect_sources(part);
}

/// Words of an input that become numbers: one that is not among the keys becomes the default.
void Element::read_coding(const Call& call, Part& part) const {
  ValueId key = call.operand(0);
  for (int step = 0; step < kLongestChain && key != ValueId::kAbsent; ++step) {
    const NodeId producer = analysis_.model().value(key).producer;
    if (producer == NodeId::kNone || !keeps_elements(Call(analysis_, producer).opcode())) break;
    key = Call(analysis_, producer).operand(0);
  }
  const Attribute* const values = call.attribute("values_int64s");
  const Attribute* const fallback = call.attribute("default_int64");
  if (key == ValueId::kAbsent || !is_main_input(analysis_, key) || values->ints.empty() ||
      values->ints.size() > kMaxElements)
    return;
  analysis_.facts().meter().charge(values->ints.size());
  const auto [least, most] = std::ranges::minmax(values->ints);
  constexpr std::int64_t kDefault = -1;
  const std::int64_t unknown = fallback == nullptr ? kDefault : fallback->i;
  part.kind = Kind::kSamples;
  part.samples = {static_cast<double>(least), static_cast<double>(most), static_cast<double>(unknown)};
}

/// A sum of comparisons of one number with many: none of them holds, or all of them.
void Element::read_sum(const Call& call, Part& part) const {
  const auto count = reduced_count(analysis_, call);
  if (!count || *count < 1 || *count > kMostTerms || !part.is_integer) return;
  const auto sums = sums_at_extremes(call.operand(0), *count);
  if (sums.empty()) return;
  part.samples = sums;
  part.kind = Kind::kSamples;
}

/// Positions: how many elements of a mask hold up to each one. The last one is counted as many times as there are.
void Element::read_running_sum(const Call& call, Part& part) const {
  const Fact& data = call.fact(0);
  if (!call.has(1) || !part.is_integer || data.kind != ValueKind::kTensor || data.shape == ShapeId::kUnranked) return;
  const auto axis = single_number(call.fact(1));
  if (!axis) return;
  const auto dims = analysis_.facts().dims_of(data.shape);
  const auto rank = static_cast<double>(dims.size());
  const double at = *axis < 0 ? *axis + rank : *axis;
  if (!(at >= 0 && at < rank)) return;
  const auto count = analysis_.facts().dims().as_constant(dims[static_cast<std::size_t>(at)]);
  const Attribute* exclusive = call.attribute("exclusive");
  const std::int64_t without = exclusive != nullptr && exclusive->i != 0 ? 1 : 0;
  if (!count || *count <= without || *count > kMostTerms) return;
  const auto sums = sums_at_extremes(call.operand(0), *count - without);
  if (sums.empty()) return;
  part.samples = sums;
  part.kind = Kind::kSamples;
}

/// The sum of so many terms where the one input that they are computed from is far below and far above all numbers that
/// it is compared with; empty where a term is not a truth, or other inputs decide.
std::vector<double> Element::sums_at_extremes(ValueId terms, std::int64_t count) const {
  if (sums_ == 0) return {};
  Element term(analysis_, terms, sums_ - 1);
  if (term.parts_.empty() || term.parts_.size() > 16) return {};
  std::vector<std::size_t> free, constants;
  for (std::size_t i = 0; i < term.parts_.size(); ++i) {
    const Part& each = term.parts_[i];
    if (each.kind == Kind::kUnknown || each.kind == Kind::kChoice) return {};
    if (each.kind == Kind::kFree) free.push_back(i);
    if (each.kind == Kind::kSamples && !each.is_constant) {
      if (!each.sources.contains(ValueId::kAbsent)) return {};
      constants.push_back(i);
    }
  }
  if (free.size() != 1 || constants.size() > 1) return {};
  std::vector<double> sums;
  for (const double far : {-1e30, 1e30}) {
    std::set<double> found;
    for (const std::size_t end : {std::size_t{0}, std::size_t{1}}) {
      term.given_.assign(term.parts_.size(), kUnknown);
      for (std::size_t i = 0; i < term.parts_.size(); ++i)
        if (term.parts_[i].kind == Kind::kSamples)
          term.given_[i] = term.parts_[i].samples[std::min(end, term.parts_[i].samples.size() - 1)];
      term.given_[free[0]] = far;
      term.charge_evaluation();
      found.insert(term.evaluate(false));
    }
    if (found.size() != 1 || !(std::abs(*found.begin()) <= 1)) return {};
    sums.push_back(static_cast<double>(count) * *found.begin());
  }
  return sums;
}

std::vector<std::size_t> Element::leaves() const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Kind kind = parts_[i].kind;
    const bool chooses = kind == Kind::kFree || kind == Kind::kChoice;
    if (chooses || (kind == Kind::kSamples && !parts_[i].is_constant)) found.push_back(i);
  }
  return found;
}

std::vector<std::size_t> Element::independent_of(std::size_t first, std::span<const std::size_t> leaves) const {
  std::vector<std::size_t> chosen{first};
  for (const std::size_t leaf : leaves) {
    const auto has_input = [&](std::size_t of) {
      const Part& part = parts_[of];
      return part.is_of_all || part.sources.size() > (part.sources.contains(ValueId::kAbsent) ? 1U : 0U);
    };
    const auto shares = [&](std::size_t other) {
      if ((parts_[leaf].is_of_all && has_input(other)) || (parts_[other].is_of_all && has_input(leaf))) return true;
      return std::ranges::any_of(parts_[leaf].sources,
                                 [&](ValueId source) { return parts_[other].sources.contains(source); });
    };
    if (leaf != first && std::ranges::none_of(chosen, shares)) chosen.push_back(leaf);
  }
  std::ranges::sort(chosen);
  return chosen;
}

/// Runs of numbers around a magnitude that each variant has for itself: one that an operation maps to the same number
/// in all of them does not matter to the result.
std::vector<double> Element::samples_of(const Part& part, int variant) const {
  if (part.kind == Kind::kSamples) return part.samples;
  std::vector<double> samples;
  if (part.kind == Kind::kChoice) {
    for (std::size_t i = 0; i < part.operands.size(); ++i) samples.push_back(static_cast<double>(i));
    return samples;
  }
  constexpr double kMagnitudes[] = {1000, 70000, 3e8};
  const double from = kMagnitudes[variant];
  for (int i = 0; i < 8; ++i) {
    const double number = from + i + (part.is_integer ? 0 : 0.25);
    samples.push_back(number);
    if (i < 4) samples.push_back(-number);
  }
  return samples;
}

double Element::evaluate_part(const Part& part) {
  const auto operand = [&](std::size_t i) { return part.operands[i] == kNone ? kUnknown : values_[part.operands[i]]; };
  switch (part.kind) {
    case Kind::kSame:
      return operand(0);
    case Kind::kInteger: {
      const double number = std::trunc(operand(0));
      return number >= part.limits.lo && number <= part.limits.hi ? number : kUnknown;
    }
    case Kind::kTruth:
      return std::isnan(operand(0)) ? kUnknown : operand(0) != 0 ? 1 : 0;
    case Kind::kQuotient:
      return operand(1) == 0 ? kUnknown : std::trunc(operand(0) / operand(1));
    case Kind::kRemainder:
      return operand(1) == 0 ? kUnknown : operand(0) - operand(1) * std::floor(operand(0) / operand(1));
    case Kind::kFunction: {
      arguments_.clear();
      bool unknown = false;
      for (std::size_t i = 0; i < part.operands.size(); ++i) {
        arguments_.push_back(operand(i));
        unknown |= part.operands[i] != kNone && std::isnan(arguments_.back());
      }
      if (unknown) return in_spite_of_unknown(part.opcode, arguments_).value_or(kUnknown);
      return part.function({arguments_, part.attributes});
    }
    default:
      return kUnknown;
  }
}

void Element::charge_evaluation() const {
  std::uint64_t steps = 0;
  for (const Part& part : parts_) steps += kStepsOfPart + part.operands.size() + part.attributes.size();
  analysis_.meter().charge(steps);
}

/// `forced`: truths are those that were found last.
double Element::evaluate(bool forced) {
  values_.assign(parts_.size(), kUnknown);
  if (!forced) truths_.assign(parts_.size(), kUnknown);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    if (part.kind == Kind::kFree || part.kind == Kind::kSamples) {
      values_[i] = given_[i];
    } else if (part.kind == Kind::kChoice) {
      if (!std::isnan(given_[i])) {
        const std::size_t chosen = part.operands[static_cast<std::size_t>(given_[i])];
        values_[i] = chosen == kNone ? kUnknown : values_[chosen];
      }
    } else if (part.is_truth && forced) {
      values_[i] = truths_[i];
    } else {
      values_[i] = evaluate_part(part);
      if (part.is_truth) truths_[i] = values_[i];
    }
  }
  return values_.back();
}

std::optional<std::int64_t> as_integer(double number) {
  if (!(std::abs(number) < 9007199254740992.0)) return std::nullopt;
  return static_cast<std::int64_t>(std::trunc(number));  // as Cast does
}

std::set<std::int64_t> Element::reached_in(std::span<const std::size_t> chosen, int variant) {
  std::vector<std::vector<double>> samples;
  std::size_t combinations = 1;
  for (const std::size_t leaf : chosen) {
    samples.push_back(samples_of(parts_[leaf], variant));
    combinations = std::min(combinations * std::max<std::size_t>(samples.back().size(), 1), std::size_t{1} << 20);
  }
  // Past the limit every so many: a number that shares no factor with the counts visits them all evenly.
  const std::size_t step = combinations <= kMaxCombinations ? 1 : combinations / kMaxCombinations * 2 + 1;
  std::set<std::int64_t> found;
  for (std::size_t at = 0; at < combinations && !analysis_.meter().is_spent(); at += step) {
    charge_evaluation();
    std::size_t rest = at;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (samples[i].empty()) continue;
      given_[chosen[i]] = samples[i][rest % samples[i].size()];
      rest /= samples[i].size();
    }
    if (const auto integer = as_integer(evaluate(false))) found.insert(*integer);
  }
  return found;
}

/// The same where an input is one of the numbers that it is compared with, or next to it.
void Element::add_at_thresholds(std::span<const std::size_t> chosen, std::set<std::int64_t>& found) {
  constexpr std::size_t kMaxThresholds = 8;
  std::set<double> thresholds;
  for (const Part& part : parts_)
    if (part.is_constant && thresholds.size() < kMaxThresholds && std::abs(part.samples[0]) < 1e6)
      thresholds.insert(part.samples[0]);
  if (std::ranges::none_of(parts_, [](const Part& part) { return part.is_truth && part.kind == Kind::kFunction; }))
    return;
  const auto give_samples = [&](int variant) {
    for (const std::size_t leaf : chosen)
      if (const auto samples = samples_of(parts_[leaf], variant); !samples.empty()) given_[leaf] = samples.front();
  };
  for (const std::size_t leaf : chosen) {
    if (parts_[leaf].kind != Kind::kFree) continue;
    for (const double threshold : thresholds)
      for (const double away : {-1.0, 0.0, 1.0}) {
        charge_evaluation();
        if (analysis_.meter().is_spent()) return;
        give_samples(0);
        given_[leaf] = threshold + away;
        const auto value = as_integer(evaluate(false));
        if (!value) continue;
        // What another input holds where this one decides is trusted as well.
        bool same = true;
        for (int variant = 0; variant < 3 && same; ++variant) {
          charge_evaluation();
          give_samples(variant);
          same = as_integer(evaluate(true)) == value;
        }
        if (same) found.insert(*value);
      }
  }
}

std::set<std::int64_t> Element::determined() {
  std::set<std::int64_t> found;
  const std::vector<std::size_t> all = leaves();
  if (parts_.empty() || all.size() > kMaxLeaves) return found;
  std::set<std::vector<std::size_t>> tried;
  for (std::size_t i = 0; i < std::max<std::size_t>(all.size(), 1); ++i) {
    const std::vector<std::size_t> chosen = all.empty() ? all : independent_of(all[i], all);
    if (!tried.insert(chosen).second) continue;
    given_.assign(parts_.size(), kUnknown);
    for (std::size_t part = 0; part < parts_.size(); ++part)
      if (parts_[part].is_constant) given_[part] = parts_[part].samples[0];
    std::set<std::int64_t> common = reached_in(chosen, 0);
    for (int variant = 1; variant < 3 && !common.empty(); ++variant) {
      const std::set<std::int64_t> other = reached_in(chosen, variant);
      std::erase_if(common, [&](std::int64_t value) { return !other.contains(value); });
    }
    add_at_thresholds(chosen, common);
    found.merge(common);
  }
  return found;
}

}  // namespace

std::optional<ReachedIndex> index_outside(const Analysis& analysis, ValueId value, std::int64_t lowest,
                                          std::int64_t extent, std::optional<std::int64_t> ignored) {
  const Range& range = analysis.fact(value).range;
  if (range.lo >= static_cast<double>(lowest) && range.hi < static_cast<double>(extent)) return std::nullopt;
  if (const auto elements = constant_elements(analysis, value)) {
    const auto outside = std::ranges::find_if(
        *elements, [&](std::int64_t index) { return index != ignored && (index < lowest || index >= extent); });
    return outside == elements->end() ? std::nullopt : std::optional(ReachedIndex{*outside, ops::Certainty::kMust});
  }
  if (analysis.facts().meter().is_spent()) return std::nullopt;
  const std::set<std::int64_t> reached = Element(analysis, value).determined();
  for (auto at = reached.rbegin(); at != reached.rend() && *at >= extent; ++at)
    if (*at != ignored) return ReachedIndex{*at, ops::Certainty::kMay};
  // A bound as low as that of the ignored labels is not what a label is.
  if (!reached.empty() && *reached.begin() < lowest && !(ignored && *reached.begin() <= *ignored))
    return ReachedIndex{*reached.begin(), ops::Certainty::kMay};
  return std::nullopt;
}

}  // namespace tensorlint::dataflow

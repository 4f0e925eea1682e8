#include "ir/ops/signatures.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <unordered_set>

#include "base/hash.h"
#include "base/text.h"
#include "ir/ops/shape_functions.h"

namespace tensorlint::ops {
namespace {

constexpr std::size_t kMaxText = 1000;

const Constraint kSignatureCount{"signature_operand_count", ConstraintKind::kOperandCount,
                                 "as many operands as the declared signature has"};
const Constraint kSignatureType{"signature_type", ConstraintKind::kTypeConstraint,
                                "an operand's type is as the declared signature says"};
const Constraint kSignatureSame{"signature_same_type", ConstraintKind::kMixedDtypes,
                                "operands of one declared type variable have one type"};
const Constraint kSignatureShape{"signature_shape", ConstraintKind::kShapes,
                                 "an operand's shape is as the declared signature says"};

using Bound = std::map<std::string, Dim, std::less<>>;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(std::string_view text) {
  return !text.empty() && is_letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_letter(c) || is_digit(c); });
}

std::vector<std::string_view> parts_of(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
    parts.push_back(trimmed(text.substr(at, end - at)));
    at = end + 1;
  }
  return parts;
}

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

/// One factor of an expression: a number, a name or "?"; nullopt for any other text.
std::optional<Dim> factor_of(DimPool& pool, std::string_view text, const Bound& bound) {
  if (text == "?") return Dim(Unknown::kNotTracked);
  if (const auto number = number_of(text)) return pool.constant(*number);
  if (!is_name(text)) return std::nullopt;
  const auto found = bound.find(text);
  return found == bound.end() ? std::nullopt : std::optional(found->second);
}

constexpr std::string_view kOperations = "+-*/";

/// "N*H + 2", "L/2 + 1": products and quotients (rounded down) before sums, left to right. nullopt: no such expression.
std::optional<Dim> expression_of(DimPool& pool, std::string_view text, const Bound& bound) {
  std::optional<Dim> sum, product;
  char sign = '+', operation = ' ';
  const auto close = [&] {
    if (!sum) return sum = product, void();
    sum = sign == '+' ? pool.add(*sum, *product) : pool.sub(*sum, *product);
  };
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(kOperations, at), text.size());
    const auto factor = factor_of(pool, trimmed(text.substr(at, end - at)), bound);
    if (!factor) return std::nullopt;
    product = operation == '*'   ? pool.mul(*product, *factor)
              : operation == '/' ? pool.floor_div(*product, *factor)
                                 : *factor;
    const char next = end < text.size() ? text[end] : ' ';
    if (next != '*' && next != '/') {
      close();
      sign = next;
    }
    operation = next == '*' || next == '/' ? next : ' ';
    at = end + 1;
  }
  return sum;
}

/// The names in a dim, as often as they stand there.
std::vector<std::string_view> names_of(std::string_view dim) {
  std::vector<std::string_view> names = parts_of(dim, kOperations);
  std::erase_if(names, [](std::string_view part) { return !is_name(part); });
  return names;
}

Result<SignatureType> make_type(std::string_view whole, bool result) {
  const auto wrong = [&](std::string_view what) { return Error{fmt::format("`{}` {}", whole, what), {}}; };
  if (whole.size() > kMaxText) return Error{"a type of more than 1000 characters", {}};
  SignatureType type;
  std::string_view text = trimmed(whole);
  if (text.ends_with('?')) {
    if (result) return wrong("is a result, which cannot be optional");
    type.optional = true;
    text = trimmed(text.substr(0, text.size() - 1));
  }
  const std::size_t open = text.find('[');
  if (open == std::string_view::npos || !text.ends_with(']'))
    return wrong("is not a type: write float32[N, 3], T[N] or T[...]");
  const std::string_view dtypes = trimmed(text.substr(0, open)),
                         dims = trimmed(text.substr(open + 1, text.size() - open - 2));
  const std::vector<std::string_view> names = parts_of(dtypes, "|");
  if (names.size() == 1 && !dtype_named(names[0])) {
    if (!is_name(names[0]) || names[0][0] < 'A' || names[0][0] > 'Z') {
      return wrong(
          fmt::format("begins with `{}`, which is neither a dtype nor a type variable (a name in capitals)", names[0]));
    }
    type.variable = names[0];
  } else {
    type.dtypes = DTypeSet::none();
    for (const std::string_view name : names) {
      const auto dtype = dtype_named(name);
      if (!dtype) return wrong(fmt::format("has the unknown dtype `{}`", name));
      type.dtypes = type.dtypes | *dtype;
    }
  }
  if (dims == "...") return type;
  type.ranked = true;
  if (dims.empty()) return type;
  for (const std::string_view dim : parts_of(dims, ",")) {
    if (!result && dim != "?" && !number_of(dim) && !is_name(dim))
      return wrong(fmt::format("has the dim `{}`; an operand's dims are numbers, names or ?", dim));
    type.dims.emplace_back(dim);
  }
  if (type.dims.size() > kMaxRank) return wrong(fmt::format("has more than {} dims", kMaxRank));
  return type;
}

/// Checks the operands of one call and binds type variables and dim names.
class SignatureCheck {
 public:
  SignatureCheck(const Signature& signature, const Application& call, InferenceResult& out)
      : signature_(signature), call_(call), out_(out), pool_(call.facts->dims()) {}

  void operands() {
    const std::size_t count = call_.operands.size();
    if (count > signature_.inputs.size() || count < signature_.required) {
      const std::size_t wanted = count < signature_.required ? signature_.required : signature_.inputs.size();
      fail(kSignatureCount, {},
           {"{} is declared to take {} {} operand{}, {} given", call_.name, count < wanted ? "at least" : "at most",
            wanted, plural(wanted), count});
    }
    for (std::size_t i = 0; i < std::min(count, signature_.inputs.size()); ++i) {
      if (out_.violations.size() >= kMostViolations || pool_.shared_meter()->is_spent()) return;
      const SignatureType& type = signature_.inputs[i];
      if (!call_.has_operand(i)) {
        if (!type.optional)
          fail(kSignatureCount, {}, {"{} is declared to need operand {}, which is left out", call_.name, i});
        continue;
      }
      const Fact& fact = call_.operand(i);
      if (fact.kind == ValueKind::kUnknown) continue;
      if (fact.kind != ValueKind::kTensor) {
        fail(kSignatureType, {static_cast<int>(i)},
             {"{} is declared to take a tensor, {} is a {}", call_.name, OperandRef(i), to_text(fact.kind)});
        continue;
      }
      dtypes(i, type, fact);
      if (type.ranked && call_.facts->is_ranked(fact.shape)) shape(i, type, call_.facts->dims_of(fact.shape));
    }
  }

  Fact result(const SignatureType& type) {
    Fact fact;
    fact.kind = ValueKind::kTensor;
    const auto variable = variables_.find(type.variable);
    fact.dtypes = type.variable.empty()          ? type.dtypes
                  : variable == variables_.end() ? DTypeSet::all()
                                                 : variable->second;
    fact.range = range_of(fact.dtypes);
    if (!type.ranked) return fact;
    Dims dims;
    for (const std::string& text : type.dims) {
      pool_.shared_meter()->charge(kStepsOfLetter * text.size());  // read again by each call
      // A name of an operand that was left out, or has no known shape, is an extent of its own: that of the place where
      // the results name it first.
      for (const std::string_view name : names_of(text)) {
        ++place_;
        pool_.shared_meter()->charge(kStepsOfVariable);
        Dim& dim = bound_.try_emplace(std::string(name)).first->second;
        if (!dim.is_unknown()) continue;
        out_.repeatable = false;
        dim = pool_.fresh(call_.site, place_, Unknown::kDataDependent);
      }
      const Dim dim = expression_of(pool_, text, bound_).value_or(Dim(Unknown::kNotTracked));
      dims.push_back(pool_.bounds(dim).hi < 0 ? Dim(Unknown::kTainted) : dim);
    }
    fact.shape = call_.facts->intern_shape(dims);
    return fact;
  }

 private:
  void dtypes(std::size_t i, const SignatureType& type, const Fact& fact) {
    if (type.variable.empty()) {
      if (!fact.dtypes.empty() && !fact.dtypes.intersects(type.dtypes))
        fail(kSignatureType, {static_cast<int>(i)},
             {"{} is declared to take {}, {} is {}", call_.name, type.dtypes, OperandRef(i), fact.dtypes});
      return;
    }
    pool_.shared_meter()->charge(kStepsOfVariable);
    const auto [found, first] = variables_.emplace(type.variable, fact.dtypes);
    if (first) {
      binder_[type.variable] = static_cast<int>(i);
    } else if (!found->second.intersects(fact.dtypes)) {
      const int other = binder_[type.variable];
      fail(kSignatureSame, {static_cast<int>(i), other},
           {"{} is declared to take operands of one dtype {}: {} is {}, {} is {}", call_.name, type.variable,
            OperandRef(other), found->second, OperandRef(i), fact.dtypes});
    } else {
      found->second = found->second & fact.dtypes;
    }
  }

  void shape(std::size_t i, const SignatureType& type, std::span<const Dim> dims) {
    const int operand = static_cast<int>(i);
    if (dims.size() != type.dims.size()) {
      fail(kSignatureShape, {operand},
           {"{} is declared to take rank {}, {} has shape {}", call_.name, type.dims.size(), OperandRef(i), dims});
      return;
    }
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      const std::string& text = type.dims[axis];
      if (text == "?") continue;
      pool_.shared_meter()->charge(kStepsOfVariable + text.size() / 2);
      Dim wanted;
      if (const auto number = number_of(text)) {
        wanted = pool_.constant(*number);
      } else {
        Dim& known = bound_[text];
        wanted = known;
        if (known.is_unknown()) known = dims[axis];
      }
      if (!pool_.differ(wanted, dims[axis])) continue;
      fail(kSignatureShape, {operand},
           {"axis {} of {} has extent {}, {} is declared with {}{}", Axis(axis), OperandRef(i), dims[axis], call_.name,
            text, number_of(text) ? Message() : Message(", which is {} already", wanted)});
    }
  }

  void fail(const Constraint& constraint, std::vector<int> operands, Message message) {
    const Aspect aspect = aspect_of(constraint.kind);
    for (const int operand : operands)
      if (call_.taint(static_cast<std::size_t>(operand)).has(aspect)) return;
    pool_.shared_meter()->charge(kStepsOfViolation);
    out_.violations.push_back({&constraint, Certainty::kMust, std::move(operands), std::move(message), {}});
  }

  static constexpr std::size_t kMostViolations = 256;    // more say nothing new
  static constexpr std::uint64_t kStepsOfLetter = 4;     // two are a factor and what it is joined by
  static constexpr std::uint64_t kStepsOfVariable = 64;  // it is looked up, and written into maps

  const Signature& signature_;
  const Application& call_;
  InferenceResult& out_;
  DimPool& pool_;
  std::map<std::string, DTypeSet, std::less<>> variables_;
  std::map<std::string, int, std::less<>> binder_;
  Bound bound_;
  std::uint32_t place_ = 0;  ///< of a name in the results
};

}  // namespace

Result<Signature> make_signature(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
  Signature signature;
  signature.inputs.reserve(inputs.size());  // views point into them
  signature.outputs.reserve(outputs.size());
  std::unordered_set<std::string_view, TextHash> names, variables;
  for (const std::string& text : inputs) {
    auto made = make_type(text, false);
    if (!made) return made.error();
    const SignatureType& type = signature.inputs.emplace_back(std::move(*made));
    names.insert(type.dims.begin(), type.dims.end());
    variables.insert(type.variable);
    if (!type.optional) signature.required = signature.inputs.size();
  }
  const auto is_factor = [&](std::string_view part) {
    return part == "?" || number_of(part) || (is_name(part) && names.contains(part));
  };
  for (const std::string& text : outputs) {
    auto made = make_type(text, true);
    if (!made) return made.error();
    const SignatureType& type = signature.outputs.emplace_back(std::move(*made));
    if (!type.variable.empty() && !variables.contains(type.variable))
      return Error{fmt::format("`{}` has the type variable `{}`, which no operand has", text, type.variable), {}};
    for (const std::string& dim : type.dims) {
      // A name of its own is an extent that depends on the data.
      if (is_name(dim)) names.insert(dim);
      if (!std::ranges::all_of(parts_of(dim, kOperations), is_factor))
        return Error{fmt::format("`{}` has the dim `{}`; write numbers, the operands' names, and + - * / between them",
                                 text, dim),
                     {}};
    }
  }
  return signature;
}

void infer_signature(const Signature& signature, const Application& call, InferenceResult& out) {
  out.clear();
  SignatureCheck check(signature, call, out);
  check.operands();
  Taint taint;
  for (std::size_t i = 0; i < call.operands.size(); ++i) taint |= call.taint(i);
  for (const Violation& violation : out.violations) taint |= violation.aspect();
  if (call.result_count > signature.outputs.size())
    out.violations.push_back({&kSignatureCount,
                              Certainty::kMust,
                              {},
                              {"{} is declared with {} result{}, {} asked for", call.name, signature.outputs.size(),
                               plural(signature.outputs.size()), call.result_count},
                              {}});
  const Meter& meter = call.facts->meter();
  for (std::uint32_t r = 0; r < call.result_count; ++r) {
    out.results.push_back(r < signature.outputs.size() && !meter.is_spent()
                              ? call.facts->intern(check.result(signature.outputs[r]))
                              : FactId::kTop);
    out.taints.push_back(taint);
  }
}

}  // namespace tensorlint::ops

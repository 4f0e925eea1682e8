// A call of an operator, and the same call with one part changed: an operand's shape, dtype, elements or bounds, an
// attribute, the opset. What is inferred of each is one line of text.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/ops/inference.h"
#include "ir/ops/shape_functions.h"

namespace tensorlint::ops {

/// Everything of a fact, also what messages leave out.
inline std::string full_text(const FactStore& facts, FactId id, int depth = 0) {
  if (id == FactId::kAbsent) return "_";
  const Fact& fact = facts.fact(id);
  if (fact.kind == ValueKind::kUnknown) return "?";
  std::string text = fact.kind == ValueKind::kTensor ? "" : std::string(to_text(fact.kind)) + " ";
  if (fact.kind == ValueKind::kMap) text += std::string(to_text(fact.key)) + " ";
  if (fact.kind != ValueKind::kTensor && fact.element != FactId::kTop && depth < 2)
    text += fmt::format("({}) ", full_text(facts, fact.element, depth + 1));
  text += fact.dtypes == DTypeSet::all() ? "any" : fact.dtypes.to_text();
  text += facts.shape_text(fact.shape);
  if (const Content* content = facts.content(fact.content); content != nullptr) {
    text += " {";
    for (const Dim element : content->integers) text += facts.dims().to_text(element) + " ";
    for (const double element : content->floats) text += fmt::format("{:.5g} ", element);
    text.back() = '}';
  }
  if (!(fact.range == range_of(fact.dtypes)))
    text += fmt::format(" in [{:.5g}, {:.5g}]{}", fact.range.lo, fact.range.hi, fact.range.nan ? " or NaN" : "");
  if (fact.attains) text += " attained";
  return text;
}

/// Wraps around: models have the largest numbers that there are.
constexpr std::int64_t next_to(std::int64_t number, std::int64_t step) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(number) + static_cast<std::uint64_t>(step));
}

/// Owns what its attributes point to, and not its facts. Copies share the owner.
struct VariedCall {
  std::string_view domain, name;
  std::int64_t opset = 0;
  const OpSchema* schema = nullptr;
  std::vector<Attribute> attributes;
  std::vector<Fact> operands;
  std::vector<bool> given;                ///< by operand: not left out
  std::size_t tainted = ~std::size_t{0};  ///< the operand with every taint
  std::uint32_t result_count = 1;
  FactStore* facts = nullptr;
  std::deque<std::vector<std::int64_t>>* lists = nullptr;  ///< what `ints` of changed attributes point to

  VariedCall(const Application& call, std::deque<std::vector<std::int64_t>>& owner)
      : domain(call.domain),
        name(call.name),
        opset(call.opset),
        schema(call.schema),
        attributes(call.attributes.begin(), call.attributes.end()),
        result_count(call.result_count),
        facts(call.facts),
        lists(&owner) {
    for (std::size_t i = 0; i < call.operands.size(); ++i) {
      operands.push_back(call.operand(i));
      given.push_back(call.has_operand(i));
    }
  }

  std::vector<FactId> operand_ids() const {
    std::vector<FactId> ids;
    for (std::size_t i = 0; i < operands.size(); ++i)
      ids.push_back(given[i] ? facts->intern(operands[i]) : FactId::kAbsent);
    return ids;
  }

  std::string title() const {
    std::string text = fmt::format("{}{}{}-{} (", domain, domain.empty() ? "" : ".", name, opset);
    for (const FactId id : operand_ids()) text += (text.ends_with('(') ? "" : ", ") + full_text(*facts, id);
    text += ")";
    for (const Attribute& attribute : attributes) {
      text += fmt::format(" {}=", attribute.name);
      if (attribute.kind == AttributeKind::kInt) text += std::to_string(attribute.i);
      if (attribute.kind == AttributeKind::kFloat) text += fmt::format("{:.5g}", attribute.f);
      if (attribute.kind == AttributeKind::kString) text += attribute.s;
      if (attribute.kind == AttributeKind::kInts) text += fmt::format("[{}]", fmt::join(attribute.ints, " "));
      if (attribute.kind == AttributeKind::kFloats) text += fmt::format("{} floats", attribute.floats.size());
    }
    return text;
  }

  /// Results, what fails, which extents are learnt to be equal; whether the call is rejected for sure.
  std::string outcome(bool& rejected) const {
    const std::vector<FactId> ids = operand_ids();
    std::vector<Taint> taints(ids.size());
    if (tainted < taints.size())
      for (const Aspect aspect : {Aspect::kDtype, Aspect::kShape, Aspect::kValue}) taints[tainted] |= aspect;
    Application call;
    call.domain = domain;
    call.name = name;
    call.opset = opset;
    call.schema = schema;
    call.attributes = attributes;
    call.operands = ids;
    call.operand_taints = taints;
    call.result_count = result_count;
    call.facts = facts;
    call.site = 1;
    InferenceResult result;
    infer(call, find_entry(domain, name, opset), result);
    std::string text;
    for (std::size_t r = 0; r < result.results.size(); ++r) {
      text += (r == 0 ? "" : "; ") + full_text(*facts, result.results[r]);
      if (result.taints[r].bits != 0) text += fmt::format(" tainted {}", result.taints[r].bits);
    }
    for (const Violation& violation : result.violations) {
      rejected = rejected || violation.certainty == Certainty::kMust;
      text += fmt::format("; {}{} ({}): {}", violation.constraint->label,
                          violation.certainty == Certainty::kMay ? " perhaps" : "", fmt::join(violation.operands, " "),
                          to_text(violation.message, *facts));
    }
    for (const auto& [a, b] : result.equalities)
      text += fmt::format("; {} = {}", facts->dims().to_text(a), facts->dims().to_text(b));
    if (!result.repeatable) text += "; this once";
    return text;
  }
};

/// Calls `visit(text, call)` for the call and for each of its variations.
template <typename Visit>
class Variations {
 public:
  Variations(const VariedCall& base, Visit visit) : base_(base), visit_(visit) {}

  void all() {
    visit_("unchanged", base_);
    for (std::size_t i = 0; i < base_.operands.size(); ++i) {
      if (!base_.given[i]) continue;
      shapes(i);
      dtypes(i);
      elements(i);
      bounds(i);
      presence(i);
      alone(i);
    }
    together();
    attributes();
    whole();
  }

 private:
  using Extents = std::vector<Dim>;

  Dim number(std::int64_t value) const { return base_.facts->dims().constant(value); }
  Dim symbol(const std::string& name) const { return base_.facts->dims().symbol(name); }

  void with_fact(const std::string& text, std::size_t i, const Fact& fact) {
    VariedCall call = base_;
    call.operands[i] = fact;
    visit_(fmt::format("{} {}", i, text), call);
  }

  /// The fact without what a changed shape or dtype contradicts.
  Fact bare(std::size_t i) const {
    Fact fact = base_.operands[i];
    fact.content = ContentId::kNone;
    fact.attains = false;
    return fact;
  }

  void with_shape(std::size_t i, const Extents& extents) {
    Fact fact = bare(i);
    fact.shape = base_.facts->intern_shape(extents);
    with_fact(base_.facts->shape_text(fact.shape), i, fact);
  }

  void shapes(std::size_t i) {
    const Fact& fact = base_.operands[i];
    if (fact.kind != ValueKind::kTensor) return;
    Fact unranked = bare(i);
    unranked.shape = ShapeId::kUnranked;
    with_fact("[...]", i, unranked);
    if (!base_.facts->is_ranked(fact.shape)) return;
    const auto dims = base_.facts->dims_of(fact.shape);
    const Extents extents(dims.begin(), dims.end());
    if (extents.size() > 8) return;
    with_shape(i, {});
    Extents longer = extents;
    longer.insert(longer.begin(), number(2));
    with_shape(i, longer);
    longer = extents;
    longer.push_back(number(1));
    with_shape(i, longer);
    if (!extents.empty()) {
      with_shape(i, {extents.begin(), extents.end() - 1});
      with_shape(i, {extents.begin() + 1, extents.end()});
    }
    for (std::size_t axis = 0; axis + 1 < extents.size(); ++axis) {
      Extents swapped = extents;
      std::swap(swapped[axis], swapped[axis + 1]);
      if (swapped != extents) with_shape(i, swapped);
    }
    DimPool& pool = base_.facts->dims();
    const Dim twice = pool.add(pool.mul(symbol("s"), number(2)), number(1));
    if (!extents.empty()) with_shape(i, Extents(extents.size(), symbol("s")));
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      const auto known = base_.facts->dims().as_constant(extents[axis]);
      std::vector<Dim> others{
          number(0), number(1), symbol("s"), Dim(Unknown::kNotTracked), twice, pool.sub(symbol("s"), number(2))};
      if (known)
        others.insert(others.end(),
                      {number(next_to(*known, 1)), number(std::max<std::int64_t>(next_to(*known, -1), 0))});
      for (const Dim other : others) {
        Extents changed = extents;
        changed[axis] = other;
        if (!(other == extents[axis])) with_shape(i, changed);
      }
    }
  }

  Fact of_dtypes(std::size_t i, DTypeSet dtypes) const {
    Fact fact = bare(i);
    fact.dtypes = dtypes;
    fact.range = range_of(dtypes);
    return fact;
  }

  void dtypes(std::size_t i) {
    const Fact& fact = base_.operands[i];
    if (fact.kind != ValueKind::kTensor) return;
    for (const DTypeSet other :
         {DTypeSet(DType::kFloat16), DTypeSet(DType::kInt64), DTypeSet(DType::kBool), DTypeSet(DType::kUint8),
          DTypeSet(DType::kString), DTypeSet(DType::kInt64) | DTypeSet(DType::kFloat32), DTypeSet::all()})
      if (!(other == fact.dtypes)) with_fact(other.to_text(), i, of_dtypes(i, other));
  }

  std::optional<std::size_t> count(const Fact& fact) const {
    if (!base_.facts->is_ranked(fact.shape)) return std::nullopt;
    std::size_t found = 1;
    for (const Dim dim : base_.facts->dims_of(fact.shape)) {
      const auto known = base_.facts->dims().as_constant(dim);
      if (!known || *known > 64) return std::nullopt;
      found *= static_cast<std::size_t>(*known);
    }
    return found > 64 ? std::nullopt : std::optional(found);
  }

  void with_integers(std::size_t i, const std::vector<Dim>& integers) {
    Fact fact = bare(i);
    if (integers.empty()) return;
    fact.content = base_.facts->intern_content({integers, {}});
    fact.range = range_of(base_.facts->dims(), integers);
    std::string text;
    for (const Dim element : integers) text += (text.empty() ? "" : " ") + base_.facts->dims().to_text(element);
    with_fact("{" + text + "}", i, fact);
  }

  void elements(std::size_t i) {
    const Fact& fact = base_.operands[i];
    if (fact.kind != ValueKind::kTensor) return;
    const Content* content = base_.facts->content(fact.content);
    if (content != nullptr) {
      Fact unknown = bare(i);
      unknown.range = range_of(fact.dtypes);
      with_fact("unknown elements", i, unknown);
    }
    if (content != nullptr && !content->integers.empty()) {
      for (std::size_t at = 0; at < std::min<std::size_t>(content->integers.size(), 8); ++at) {
        const std::int64_t old = base_.facts->dims().as_constant(content->integers[at]).value_or(0);
        std::vector<Dim> others;
        for (const std::int64_t other :
             {next_to(old, 1), next_to(old, -1), std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 40})
          others.push_back(number(other));
        if (!fact.dtypes.contains(DType::kBool)) others.insert(others.end(), {symbol("s"), Dim(Unknown::kNotTracked)});
        for (const Dim other : others) {
          std::vector<Dim> changed = content->integers;
          changed[at] = other;
          if (!(other == content->integers[at])) with_integers(i, changed);
        }
      }
      return;
    }
    const auto elements = count(fact);
    if (!elements || *elements == 0) return;
    if (fact.dtypes.proves(DTypeSet::integers() | DTypeSet(DType::kBool))) {
      const bool truth = fact.dtypes.contains(DType::kBool);
      for (const std::int64_t value : {0, 1, 2, -1, 100}) {
        if (truth && (value < 0 || value > 1)) continue;
        with_integers(i, std::vector<Dim>(*elements, number(value)));
      }
      std::vector<Dim> counted;
      for (std::size_t at = 0; at < *elements; ++at)
        counted.push_back(number(static_cast<std::int64_t>(truth ? at % 2 : at)));
      with_integers(i, counted);
      if (!truth) {
        counted[0] = symbol("s");
        with_integers(i, counted);
      }
    } else if (fact.dtypes == DTypeSet(DType::kFloat32) || fact.dtypes == DTypeSet(DType::kFloat64)) {
      for (const double start : {0.0, 1.0, 2.5, -0.75}) {
        std::vector<double> values;
        for (std::size_t at = 0; at < *elements; ++at) values.push_back(start + 0.5 * static_cast<double>(at));
        Fact known = bare(i);
        known.range = {values.front(), values.back(), false};
        known.content = base_.facts->intern_content({{}, values});
        with_fact(fmt::format("{{{:.5g}}}", fmt::join(values, " ")), i, known);
      }
    }
  }

  void bounds(std::size_t i) {
    const Fact& fact = base_.operands[i];
    if (fact.kind != ValueKind::kTensor || fact.dtypes.contains(DType::kString)) return;
    const bool real = fact.dtypes.intersects(DTypeSet::floats());
    std::vector<Range> others{{0, 1, false}, {-1, 2, real}, {-3, -2, false},
                              {1, 3, false}, {2, 2, false}, {0, 5, real}};
    if (real) others.insert(others.end(), {{0.25, 0.5, false}, {-0.5, 0.75, false}});
    for (const Range& range : others)
      for (const bool attains : {false, true}) {
        Fact narrow = bare(i);
        narrow.range = range;
        narrow.attains = attains;
        with_fact(
            fmt::format("in [{}, {}]{}{}", range.lo, range.hi, range.nan ? " or NaN" : "", attains ? " attained" : ""),
            i, narrow);
      }
  }

  void presence(std::size_t i) {
    VariedCall call = base_;
    call.given[i] = false;
    visit_(fmt::format("{} left out", i), call);
    with_fact("anything", i, Fact{});
    call = base_;
    call.operands.resize(i);
    call.given.resize(i);
    visit_(fmt::format("{} and more cut off", i), call);
    Fact sequence;
    sequence.kind = ValueKind::kSequence;
    sequence.element = base_.facts->intern(base_.operands[i]);
    with_fact("sequence", i, sequence);
  }

  /// What changes all operands but one, and taints.
  void alone(std::size_t i) {
    VariedCall tainted = base_, unranked = base_, unknown = base_;
    tainted.tainted = i;
    visit_(fmt::format("{} tainted", i), tainted);
    if (base_.operands.size() < 3) return;  // with two the other one's variations are the same
    for (std::size_t other = 0; other < base_.operands.size(); ++other) {
      if (other == i || base_.operands[other].kind != ValueKind::kTensor) continue;
      unranked.operands[other] = bare(other);
      unranked.operands[other].shape = ShapeId::kUnranked;
      unknown.operands[other] = Fact{};
    }
    visit_(fmt::format("{} alone ranked", i), unranked);
    visit_(fmt::format("{} alone known", i), unknown);
  }

  /// What changes all operands alike.
  void together() {
    VariedCall named = base_, equal = base_, unranked = base_;
    for (std::size_t i = 0; i < base_.operands.size(); ++i) {
      const Fact& fact = base_.operands[i];
      if (fact.kind != ValueKind::kTensor || !base_.facts->is_ranked(fact.shape)) continue;
      Extents names, equals;
      for (const Dim dim : base_.facts->dims_of(fact.shape)) {
        names.push_back(symbol(fmt::format("d{}_{}", i, names.size())));
        const auto known = base_.facts->dims().as_constant(dim);
        equals.push_back(known && *known > 1 ? symbol(fmt::format("n{}", *known)) : dim);
      }
      if (fact.content == ContentId::kNone) {
        named.operands[i].shape = base_.facts->intern_shape(names);
        equal.operands[i].shape = base_.facts->intern_shape(equals);
      }
      unranked.operands[i] = bare(i);
      unranked.operands[i].shape = ShapeId::kUnranked;
    }
    visit_("symbols for each extent", named);
    visit_("symbols for equal extents", equal);
    visit_("unranked", unranked);
    if (base_.operands.empty()) return;
    const DTypeSet first = base_.operands[0].dtypes;
    for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat64, DType::kInt32, DType::kInt64,
                              DType::kUint8, DType::kInt8, DType::kBool, DType::kString, DType::kComplex64}) {
      if (DTypeSet(dtype) == first) continue;
      VariedCall call = base_;
      for (std::size_t i = 0; i < base_.operands.size(); ++i)
        if (base_.operands[i].kind == ValueKind::kTensor && base_.operands[i].dtypes == first)
          call.operands[i] = of_dtypes(i, dtype);
      visit_(fmt::format("dtype {}", to_text(dtype)), call);
    }
  }

  void with_attribute(const std::string& text, std::size_t at, const Attribute& attribute) {
    VariedCall call = base_;
    call.attributes[at] = attribute;
    visit_(fmt::format("{}={}", attribute.name, text), call);
    // The same with extents that are not numbers.
    for (std::size_t i = 0; i < call.operands.size(); ++i)
      if (call.operands[i].kind == ValueKind::kTensor && call.operands[i].content == ContentId::kNone &&
          base_.facts->is_ranked(call.operands[i].shape)) {
        Extents names;
        for (std::size_t axis = 0; axis < base_.facts->dims_of(call.operands[i].shape).size(); ++axis)
          names.push_back(symbol(fmt::format("d{}_{}", i, axis)));
        call.operands[i].shape = base_.facts->intern_shape(names);
      }
    visit_(fmt::format("{}={}, symbols for each extent", attribute.name, text), call);
  }

  void with_list(std::size_t at, std::vector<std::int64_t> list) {
    Attribute changed = base_.attributes[at];
    base_.lists->push_back(std::move(list));
    changed.ints = base_.lists->back();
    with_attribute(fmt::format("[{}]", fmt::join(changed.ints, " ")), at, changed);
  }

  void attributes() {
    for (std::size_t at = 0; at < base_.attributes.size(); ++at) {
      const Attribute& attribute = base_.attributes[at];
      VariedCall call = base_;
      call.attributes.erase(call.attributes.begin() + static_cast<std::ptrdiff_t>(at));
      visit_(fmt::format("dropped {}", attribute.name), call);
      if (attribute.kind == AttributeKind::kInt) {
        std::vector<std::int64_t> others{next_to(attribute.i, 1), next_to(attribute.i, -1), 0, 1, -1, 2, 3, -4, 1000};
        std::sort(others.begin(), others.end());
        others.erase(std::unique(others.begin(), others.end()), others.end());
        for (const std::int64_t other : others) {
          Attribute changed = attribute;
          changed.i = other;
          if (other != attribute.i) with_attribute(std::to_string(other), at, changed);
        }
      } else if (attribute.kind == AttributeKind::kFloat) {
        for (const float other : {0.0F, 1.0F, -1.0F, 0.5F, 3.0F}) {
          Attribute changed = attribute;
          changed.f = other;
          with_attribute(fmt::format("{}", other), at, changed);
        }
      } else if (attribute.kind == AttributeKind::kInts) {
        const std::vector<std::int64_t> list(attribute.ints.begin(), attribute.ints.end());
        for (std::size_t element = 0; element < std::min<std::size_t>(list.size(), 6); ++element)
          for (const std::int64_t other : {next_to(list[element], 1), next_to(list[element], -1), std::int64_t{0},
                                           std::int64_t{-1}, std::int64_t{1000}}) {
            std::vector<std::int64_t> changed = list;
            changed[element] = other;
            if (other != list[element]) with_list(at, changed);
          }
        std::vector<std::int64_t> other = list;
        other.push_back(1);
        with_list(at, other);
        with_list(at, {});
        if (!list.empty()) with_list(at, {list.begin(), list.end() - 1});
      } else if (attribute.kind == AttributeKind::kFloats || attribute.kind == AttributeKind::kStrings) {
        counted(at);
      } else if (attribute.kind == AttributeKind::kString) {
        for (const std::string_view other : kTexts) {
          Attribute changed = attribute;
          changed.s = other;
          if (other != attribute.s) with_attribute(std::string(other), at, changed);
        }
      }
    }
    if (base_.schema == nullptr) return;
    for (const FormalAttribute& formal : base_.schema->attributes)
      if (std::ranges::find(base_.attributes, formal.name, &Attribute::name) == base_.attributes.end()) added(formal);
  }

  /// Lists of numbers and texts matter by their length, and by what one of them is.
  void counted(std::size_t at) {
    const auto length = [&](auto list, auto other) {
      for (const std::size_t count :
           {std::size_t{0}, std::size_t{1}, std::size_t{2}, list.size() - 1, list.size() + 1}) {
        if (count == list.size() || count > list.size() + 1) continue;
        auto changed = list;
        changed.resize(count, other);
        with_items(at, changed, std::to_string(count));
      }
      if (list.empty()) return;
      for (const std::size_t place : {std::size_t{0}, list.size() - 1}) {
        auto changed = list;
        changed[place] = other;
        with_items(at, changed, fmt::format("{} at {}", other, place));
      }
    };
    const Attribute& attribute = base_.attributes[at];
    if (attribute.kind == AttributeKind::kFloats)
      length(std::vector<float>(attribute.floats.begin(), attribute.floats.end()), -1.0F);
    else
      length(std::vector<std::string_view>(attribute.strings.begin(), attribute.strings.end()),
             std::string_view("BRANCH_LT"));
  }

  void with_items(std::size_t at, const std::vector<float>& items, const std::string& text) {
    Attribute changed = base_.attributes[at];
    changed.floats = items;
    with_attribute(text, at, changed);
  }
  void with_items(std::size_t at, const std::vector<std::string_view>& items, const std::string& text) {
    Attribute changed = base_.attributes[at];
    changed.strings = items;
    with_attribute(text, at, changed);
  }

  void added(const FormalAttribute& formal) {
    VariedCall call = base_;
    Attribute& attribute = call.attributes.emplace_back();
    attribute.name = formal.name;
    attribute.kind = formal.kind;
    if (formal.kind == AttributeKind::kInt) {
      for (const std::int64_t value : {0, 1, 2, -1, -2, 7}) {
        attribute.i = value;
        visit_(fmt::format("added {}={}", formal.name, value), call);
      }
    } else if (formal.kind == AttributeKind::kFloat) {
      for (const float value : {0.0F, 2.0F, -1.0F}) {
        attribute.f = value;
        visit_(fmt::format("added {}={}", formal.name, value), call);
      }
    } else if (formal.kind == AttributeKind::kString) {
      for (const std::string_view value : kTexts) {
        attribute.s = value;
        visit_(fmt::format("added {}={}", formal.name, value), call);
      }
    } else if (formal.kind == AttributeKind::kInts) {
      static const std::vector<std::vector<std::int64_t>> lists{
          {},     {0},    {1},       {-1},         {0, 1},       {2, 2},
          {1, 0}, {0, 0}, {1, 1, 1}, {1, 2, 1, 0}, {0, 1, 1, 2}, {1, 0, 2, 1, 0, 1}};
      for (const auto& list : lists) {
        attribute.ints = list;
        visit_(fmt::format("added {}=[{}]", formal.name, fmt::join(list, " ")), call);
      }
    }
  }

  void whole() {
    for (std::uint32_t results = 1; results <= 4; ++results) {
      VariedCall call = base_;
      call.result_count = results;
      if (results != base_.result_count) visit_(fmt::format("results {}", results), call);
    }
    VariedCall call = base_;
    if (!base_.operands.empty()) {
      call.operands.push_back(base_.operands.back());
      call.given.push_back(true);
      visit_("extra operand", call);
    }
    // Each other version of the operator.
    for (int opset = 1; opset <= newest_opset(base_.domain); ++opset) {
      const OpSchema* schema = find_schema(base_.domain, base_.name, opset);
      if (schema == nullptr || schema->since_version != opset || schema == base_.schema) continue;
      call = base_;
      call.opset = opset;
      call.schema = schema;
      visit_(fmt::format("opset {}", opset), call);
    }
    // The last opset of each version: entries compare with numbers.
    for (int opset = 1; opset < newest_opset(base_.domain); ++opset) {
      const OpSchema* schema = find_schema(base_.domain, base_.name, opset);
      if (schema == nullptr || opset == base_.opset || schema->since_version == opset ||
          schema == find_schema(base_.domain, base_.name, opset + 1))
        continue;
      call = base_;
      call.opset = opset;
      call.schema = schema;
      visit_(fmt::format("opset {}", opset), call);
    }
  }

  /// What the operators' attributes of text may be, and what none may be.
  static constexpr std::array kTexts{std::string_view("none"),          std::string_view("sum"),
                                     std::string_view("mean"),          std::string_view("SAME_UPPER"),
                                     std::string_view("SAME_LOWER"),    std::string_view("VALID"),
                                     std::string_view("NOTSET"),        std::string_view("reflect"),
                                     std::string_view("edge"),          std::string_view("wrap"),
                                     std::string_view("linear"),        std::string_view("cubic"),
                                     std::string_view("nearest"),       std::string_view("asymmetric"),
                                     std::string_view("align_corners"), std::string_view("tf_crop_and_resize"),
                                     std::string_view("not_larger"),    std::string_view("reverse"),
                                     std::string_view("bidirectional"), std::string_view("DCR"),
                                     std::string_view("add"),           std::string_view("mul"),
                                     std::string_view("max"),           std::string_view("")};

  const VariedCall& base_;
  Visit visit_;
};

/// Calls `visit(text, call)` for the call and for each variation of it.
template <typename Visit>
void vary(const VariedCall& base, Visit visit) {
  Variations<Visit>(base, visit).all();
}

}  // namespace tensorlint::ops

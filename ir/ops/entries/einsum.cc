// Einsum. Source: ONNX Einsum, opsets 12, 28. Extents of 1 stretch, as numpy and onnxruntime do it.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "ir/ops/checks.h"
#include "ir/ops/einsum.h"

namespace tensorlint::ops {
namespace {

const Constraint kEinsumEquation{"einsum_equation", ConstraintKind::kAttribute,
                                 "the equation is well formed, with one term an operand", true};
const Constraint kEinsumRank{"einsum_rank", ConstraintKind::kRank, "a term has one letter an axis", true};
const Constraint kEinsumExtents{"einsum_extents", ConstraintKind::kShapes, "extents of one letter are equal, or 1"};
const Constraint kDetSquare{"det_square", ConstraintKind::kShapes, "the last two axes are a square matrix", true};

void einsum(Inference& in) {
  DimPool& pool = in.dims();
  const std::string_view text = in.string_attribute("equation", "");
  Message error;
  // Each visit reads it anew, if it is wrong.
  constexpr std::uint64_t kStepsOfCharacter = 4;
  in.facts().meter().charge(kStepsOfCharacter * text.size());
  const auto equation = parse_einsum(text, error);
  if (!equation) {
    in.fail(kEinsumEquation, {}, {"equation of Einsum {}", error});
    return;
  }
  const std::vector<EinsumTerm>& terms = equation->terms;
  if (terms.size() != in.operand_count()) {
    in.fail(kEinsumEquation, {},
            {"equation of Einsum has {} term{} for {} operand{}", terms.size(), plural(terms.size()),
             in.operand_count(), plural(in.operand_count())});
    return;
  }
  // Letters are ASCII.
  std::array<int, 128> uses{}, first{};
  std::array<Dim, 128> extents{};
  Dims stretched;
  bool any_ellipsis = false, ellipsis_known = true;
  int ellipsis_operand = -1;
  for (std::size_t t = 0; t < terms.size(); ++t) {
    const EinsumTerm& term = terms[t];
    const int operand = static_cast<int>(t);
    const auto shape = in.shape(operand);
    any_ellipsis |= term.has_ellipsis;
    const bool fits =
        !shape || (term.has_ellipsis ? shape->size() >= term.letters.size() : shape->size() == term.letters.size());
    if (!fits) {
      in.fail(kEinsumRank, {operand},
              {"term {} of Einsum has {} letters{}, {} has rank {}", t, term.letters.size(),
               term.has_ellipsis ? " and an ellipsis" : "", OperandRef(operand), shape->size()});
      return;
    }
    const std::size_t covered = shape ? shape->size() - term.letters.size() : 0;
    for (std::size_t i = 0; i < term.letters.size(); ++i) {
      const auto letter = static_cast<std::size_t>(term.letters[i]);
      const Dim extent =
          shape ? (*shape)[term.has_ellipsis && i >= term.ellipsis ? i + covered : i] : Dim(Unknown::kNotTracked);
      if (uses[letter]++ == 0) {
        first[letter] = operand;
        extents[letter] = extent;
        continue;
      }
      // Each of the two may be a stretched 1.
      const bool may_stretch =
          pool.bounds_from_two(extent).contains(1) || pool.bounds_from_two(extents[letter]).contains(1);
      if (!may_stretch)
        same_extent(in, extents[letter], extent, first[letter], operand, kEinsumExtents,
                    {"letter {} of Einsum", term.letters[i]});
      extents[letter] = pool.broadcast(extents[letter], extent);
    }
    if (!term.has_ellipsis) continue;
    if (!shape) {
      ellipsis_known = false;
      continue;
    }
    const auto middle = shape->subspan(term.ellipsis, covered);
    // What follows a mismatch would be compared with extents that are not those of the operand that is named.
    if (ellipsis_operand < 0) {
      stretched = copy_dims(middle);
    } else if (!in.failed()) {
      stretched = broadcast(in, stretched, middle, ellipsis_operand, operand, kEinsumExtents);
    }
    ellipsis_operand = operand;
  }

  EinsumTerm result;
  if (equation->result) {
    result = *equation->result;
    std::array<bool, 128> seen{};
    for (const char letter : result.letters) {
      const auto index = static_cast<std::size_t>(letter);
      if (uses[index] == 0 || seen[index]) {
        in.fail(kEinsumEquation, {},
                {"letter {} of Einsum's result {}", letter, seen[index] ? "is given twice" : "is in no term"});
        return;
      }
      seen[index] = true;
    }
    // Runtimes disagree on an ellipsis that only the operands have.
    if (any_ellipsis && !result.has_ellipsis && !(ellipsis_known && stretched.empty())) return;
  } else {
    result = implied_result(terms);
  }
  if (result.has_ellipsis && !ellipsis_known) return;
  Dims dims;
  for (const char letter : result.letters) dims.push_back(extents[static_cast<std::size_t>(letter)]);
  if (result.has_ellipsis)
    dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(result.ellipsis), stretched.begin(), stretched.end());
  in.set_shape(0, dims);
}

/// Source: ONNX Det, opsets 11, 22.
void det(Inference& in) {
  const auto data = in.shape(0);
  if (!data) return;
  if (data->size() < 2) {
    in.fail(kDetSquare, {0}, {"{} has rank {}, Det needs at least 2", OperandRef(0), data->size()});
    return;
  }
  DimPool& pool = in.dims();
  const Dim rows = (*data)[data->size() - 2], columns = data->back();
  if (pool.differ(rows, columns) && !pool.bounds(pool.sub(rows, columns)).contains(0))
    in.fail(kDetSquare, {0},
            {"last two axes of {} of shape {} are not square: {} against {}", OperandRef(0), *data, rows, columns});
  in.set_shape(0, data->first(data->size() - 2));
}

const RegisterOps kRegisterEinsum{
    OpEntry("Einsum")
        .computes(Opcode::kEinsum)
        .infer(einsum)
        .constraint(kEinsumEquation)
        .constraint(kEinsumRank)
        .constraint(kEinsumExtents),
    OpEntry("Det").infer(det).constraint(kDetSquare),
};

}  // namespace
}  // namespace tensorlint::ops

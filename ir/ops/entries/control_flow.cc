// Operators with subgraphs. Source: ONNX If, Loop, Scan, SequenceMap, all opsets.
// Their results are what the bodies compute: the dataflow solver follows these. One call tells only what it is
// controlled by.
#include "ir/ops/checks.h"

namespace tensorlint::ops {
namespace {

const Constraint kCondition{"condition_is_one_element", ConstraintKind::kShapes,
                            "a condition and a trip count are one element"};
const Constraint kScanCounts{"scan_counts", ConstraintKind::kAttribute,
                             "num_scan_inputs of the operands are scanned; axes and directions are given for each"};
const Constraint kScanAxes{"scan_axes_in_range", ConstraintKind::kAxisRange, "-rank <= axis < rank"};

void branch(Inference& in) { check_one_element(in, 0, kCondition, "the condition"); }

void loop(Inference& in) {
  check_one_element(in, 0, kCondition, "the trip count");
  check_one_element(in, 1, kCondition, "the condition");
}

/// An attribute with one entry for each scanned operand or result; false where it has not as many, or other directions
/// than 0 and 1.
bool check_scan_list(Inference& in, std::string_view name, std::size_t count, std::string_view what) {
  const auto list = in.ints_attribute(name);
  if (!list) return true;
  if (list->size() != count) {
    in.fail(kScanCounts, {}, {"{} of Scan has {} entries for {} {}", AttributeName(name), list->size(), count, what});
    return false;
  }
  for (const std::int64_t entry : *list) {
    if (!name.ends_with("directions") || entry == 0 || entry == 1) continue;
    in.fail(kScanCounts, {}, {"{} of Scan has {}, a direction is 0 or 1", AttributeName(name), entry});
    return false;
  }
  return true;
}

void scan(Inference& in) {
  const std::size_t first =
      in.opset() < 9 ? 1 : 0;  // opset 8: operand 0 is sequence_lens, every value has a batch axis
  const std::size_t operands = in.operand_count() - std::min(first, in.operand_count());
  const std::int64_t wanted = in.int_attribute("num_scan_inputs", 1);
  if (wanted < 1 || static_cast<std::uint64_t>(wanted) > operands) {
    in.fail(kScanCounts, {},
            {"{} of Scan is {}, it has to be at least 1 and at most {}, the number of its operands",
             AttributeName("num_scan_inputs"), wanted, operands});
    return;
  }
  const auto scanned = static_cast<std::size_t>(wanted);
  const std::size_t states = operands - scanned, stacked = in.result_count() - std::min(states, in.result_count());
  if (first == 1) {
    check_scan_list(in, "directions", scanned, "scanned operands");
    return;
  }
  check_scan_list(in, "scan_input_directions", scanned, "scanned operands");
  check_scan_list(in, "scan_output_directions", stacked, "stacked results");
  check_scan_list(in, "scan_output_axes", stacked, "stacked results");
  if (!check_scan_list(in, "scan_input_axes", scanned, "scanned operands")) return;
  const auto axes = in.ints_attribute("scan_input_axes");
  for (std::size_t i = 0; i < scanned; ++i) {
    const int operand = static_cast<int>(states + i);
    if (const auto rank = in.rank(operand)) normalise_axis(in, axes ? (*axes)[i] : 0, *rank, operand, kScanAxes);
  }
}

const RegisterOps kRegisterControlFlow{
    OpEntry("If").trait(OpTrait::kControlFlow).infer(branch).constraint(kCondition),
    OpEntry("Loop").trait(OpTrait::kControlFlow).infer(loop).constraint(kCondition),
    OpEntry("Scan").trait(OpTrait::kControlFlow).infer(scan).constraint(kScanCounts).constraint(kScanAxes),
    OpEntry("SequenceMap").trait(OpTrait::kControlFlow),
};

}  // namespace
}  // namespace tensorlint::ops

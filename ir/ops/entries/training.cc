// Training. Source: ONNX ai.onnx.preview.training, opset 1: Adagrad, Adam, Gradient, Momentum.
#include "ir/ops/checks.h"

namespace tensorlint::ops {
namespace {

const Constraint kOptimizerCount{"optimizer_operand_count", ConstraintKind::kOperandCount,
                                 "every optimised tensor comes with its gradient and states", true};
const Constraint kOptimizerShapes{"optimizer_shapes", ConstraintKind::kShapes,
                                  "gradient and states have the optimised tensor's shape", true};
const Constraint kGradientCount{"gradient_count", ConstraintKind::kOperandCount,
                                "as many operands as names in xs and zs, as many results as in xs"};

/// Operands are rate, step, then `groups` groups of as many tensors; results are the new tensors, then their states.
void optimizer(Inference& in, std::size_t groups) {
  const std::size_t tensors = in.operand_count() - 2;
  if (in.operand_count() < 2 || tensors % groups != 0) {
    in.fail(kOptimizerCount, {},
            {"{} takes groups of {} tensors after rate and step, {} given", in.call().name, groups, tensors});
    return;
  }
  const std::size_t count = tensors / groups;
  for (std::size_t i = 0; i < count; ++i) {
    const int tensor = static_cast<int>(2 + i);
    const auto shape = in.shape(tensor);
    for (std::size_t group = 1; shape && group < groups; ++group)
      if (!check_shape(in, static_cast<int>(2 + group * count + i), *shape, kOptimizerShapes,
                       group == 1 ? "gradient" : "state", tensor))
        break;
  }
  for (std::size_t r = 0; count > 0 && r < in.result_count(); ++r) {
    const int tensor = static_cast<int>(2 + r % count);
    in.set_dtype(static_cast<int>(r), in.operand(tensor).dtypes);
    in.result(static_cast<int>(r)).kind = in.operand(tensor).kind;
    if (const auto shape = in.shape(tensor)) in.set_shape(static_cast<int>(r), *shape);
  }
}

/// The i-th result is the gradient by the i-th tensor of xs, which is the i-th operand.
void gradient(Inference& in) {
  const auto names = [&](std::string_view attribute) {
    return in.attribute(attribute) == nullptr ? 0 : in.attribute(attribute)->strings.size();
  };
  if (names("xs") + names("zs") != in.operand_count() || names("xs") != in.result_count()) {
    in.fail(kGradientCount, {},
            {"Gradient names {} tensors in xs and {} in zs, with {} operands and {} results", names("xs"), names("zs"),
             in.operand_count(), in.result_count()});
    return;
  }
  for (std::size_t r = 0; r < in.result_count(); ++r) {
    const int index = static_cast<int>(r);
    in.result(index).kind = in.operand(index).kind;
    // The schema allows any type for what is differentiated, and floats for the gradient.
    if (const DTypeSet dtypes = in.operand(index).dtypes & in.result(index).dtypes; !dtypes.empty())
      in.set_dtype(index, dtypes);
    if (const auto shape = in.shape(index)) in.set_shape(index, *shape);
  }
}

OpEntry training(std::string_view name, InferFunction function) {
  return OpEntry(name, "ai.onnx.preview.training").infer(function);
}

const RegisterOps kRegisterTraining{
    training("Adagrad", [](Inference& in) { optimizer(in, 3); })
        .constraint(kOptimizerCount)
        .constraint(kOptimizerShapes),
    training("Adam", [](Inference& in) { optimizer(in, 4); }).constraint(kOptimizerCount).constraint(kOptimizerShapes),
    training("Momentum", [](Inference& in) { optimizer(in, 3); })
        .constraint(kOptimizerCount)
        .constraint(kOptimizerShapes),
    training("Gradient", gradient).constraint(kGradientCount),
};

}  // namespace
}  // namespace tensorlint::ops

// Losses of torch.nn.functional (2.13) in operators of ONNX, in the forms that PyTorch's exporters give them, so that
// the loss recogniser and runtimes know them.
#include <fmt/format.h>

#include "analyzer/builder/numbers.h"
#include "analyzer/builder/state.h"

namespace tensorlint::builder {
namespace {

/// Builds the steps of one loss; its numbers have the dtype and the place of what they meet.
class LossWriter {
 public:
  LossWriter(Builder& builder, State& state, Value input, Value target, std::string_view torch_name,
             std::source_location at)
      : call_(state), builder_(builder), state_(state), input_(input), at_(at) {
    state_.check_operand(input, "the input of a loss", at);
    state_.check_operand(target, "the target of a loss", at);
    state_.loss_metadata = fmt::format("{0}: aten.{0}.default", torch_name);
  }

  Value number(double value) {
    const DType dtype = input_.dtype().value_or(DType::kFloat32);
    const std::string& device = state_.item(input_).guessed_device;
    const bool is_float = DTypeSet(dtype).is_subset_of(DTypeSet::floats());
    Data data = scalar_of(is_float ? dtype : DType::kFloat32, value).value_or(Data(static_cast<float>(value)));
    return builder_.constant(std::move(data), "", device == "cpu" ? "" : device, at_);
  }
  Value op(std::string_view name, std::vector<Value> operands, std::vector<Attr> attributes = {}) {
    return builder_.op(name, std::move(operands), {.attributes = std::move(attributes)}, at_);
  }
  Value reduced(Value elements, Reduction reduction) {
    if (reduction == Reduction::kMean) elements = builder_.reduce_mean(elements, {}, false, at_);
    if (reduction == Reduction::kSum) elements = builder_.reduce_sum(elements, {}, false, at_);
    call_.finish(true);
    return elements;
  }
  Value finished(Value loss) {
    call_.finish(true);
    return loss;
  }

 private:
  Composite call_;
  Builder& builder_;
  State& state_;
  Value input_;
  std::source_location at_;
};

/// log(probability), at least -100 as PyTorch has it.
Value clamped_log(LossWriter& write, Value probability) {
  return write.op("Max", {write.op("Log", {probability}), write.number(-100)});
}

std::string_view to_text(Reduction reduction) {
  switch (reduction) {
    case Reduction::kNone:
      return "none";
    case Reduction::kSum:
      return "sum";
    default:
      return "mean";
  }
}

}  // namespace

Value Builder::mse_loss(Value input, Value target, Reduction reduction, Location at) {
  LossWriter write(*this, *state_, input, target, "mse_loss", at);
  const Value difference = write.op("Sub", {input, target});
  return write.reduced(write.op("Mul", {difference, difference}), reduction);
}

Value Builder::l1_loss(Value input, Value target, Reduction reduction, Location at) {
  LossWriter write(*this, *state_, input, target, "l1_loss", at);
  return write.reduced(write.op("Abs", {write.op("Sub", {input, target})}), reduction);
}

Value Builder::smooth_l1_loss(Value input, Value target, Reduction reduction, double beta, Location at) {
  if (!(beta >= 0)) State::misuse(at, fmt::format("beta is {}, it is at least 0", beta));
  if (beta == 0) return l1_loss(input, target, reduction, at);  // as PyTorch has it
  LossWriter write(*this, *state_, input, target, "smooth_l1_loss", at);
  const Value distance = write.op("Abs", {write.op("Sub", {input, target})});
  const Value near = write.op("Less", {distance, write.number(beta)});
  const Value square = write.op("Mul", {write.op("Mul", {distance, distance}), write.number(0.5 / beta)});
  const Value line = write.op("Sub", {distance, write.number(0.5 * beta)});
  return write.reduced(write.op("Where", {near, square, line}), reduction);
}

Value Builder::huber_loss(Value input, Value target, Reduction reduction, double delta, Location at) {
  if (!(delta > 0)) State::misuse(at, fmt::format("delta is {}, it is above 0", delta));
  LossWriter write(*this, *state_, input, target, "huber_loss", at);
  const Value distance = write.op("Abs", {write.op("Sub", {input, target})});
  const Value near = write.op("Less", {distance, write.number(delta)});
  const Value square = write.op("Mul", {write.op("Mul", {distance, write.number(0.5)}), distance});
  const Value line = write.op("Mul", {write.op("Sub", {distance, write.number(0.5 * delta)}), write.number(delta)});
  return write.reduced(write.op("Where", {near, square, line}), reduction);
}

Value Builder::bce_loss(Value input, Value target, Reduction reduction, Location at) {
  LossWriter write(*this, *state_, input, target, "binary_cross_entropy", at);
  const Value of_no = write.op("Mul", {write.op("Sub", {target, write.number(1)}),
                                       clamped_log(write, write.op("Sub", {write.number(1), input}))});
  const Value of_yes = write.op("Mul", {target, clamped_log(write, input)});
  return write.reduced(write.op("Sub", {of_no, of_yes}), reduction);
}

Value Builder::bce_with_logits_loss(Value input, Value target, Reduction reduction, Location at) {
  LossWriter write(*this, *state_, input, target, "binary_cross_entropy_with_logits", at);
  // log(sigmoid(x)) as -softplus(-x): exact where the sigmoid would be 0.
  const Value linear = write.op("Mul", {write.op("Sub", {write.number(1), target}), input});
  return write.reduced(write.op("Add", {linear, write.op("Softplus", {write.op("Neg", {input})})}), reduction);
}

Value Builder::cross_entropy_loss(Value input, Value target, ClassLoss options, Location at) {
  LossWriter write(*this, *state_, input, target, "cross_entropy_loss", at);
  state_->check_operand(target, "the target of a loss", at);
  const auto dtype = target.dtype();
  const bool probabilities =
      dtype && DTypeSet::floats().contains(*dtype) && target.rank() && target.rank() == input.rank();
  if (!probabilities)
    return write.finished(
        write.op("SoftmaxCrossEntropyLoss", {input, target, options.weight},
                 {{"reduction", std::string(to_text(options.reduction))}, {"ignore_index", options.ignore_index}}));
  const std::int64_t classes = *input.rank() == 1 ? 0 : 1;
  Value logarithm = write.op("LogSoftmax", {input}, {{"axis", classes}});
  if (options.weight) {
    std::vector<std::int64_t> dims(*input.rank(), 1);
    dims[static_cast<std::size_t>(classes)] = -1;
    logarithm = write.op("Mul", {logarithm, reshape(options.weight, std::move(dims), at)});
  }
  const Value rows = write.op("Neg", {reduce_sum(write.op("Mul", {target, logarithm}), {classes}, false, at)});
  return write.reduced(rows, options.reduction);
}

Value Builder::nll_loss(Value input, Value target, ClassLoss options, Location at) {
  LossWriter write(*this, *state_, input, target, "nll_loss", at);
  return write.finished(
      write.op("NegativeLogLikelihoodLoss", {input, target, options.weight},
               {{"reduction", std::string(to_text(options.reduction))}, {"ignore_index", options.ignore_index}}));
}

Value Builder::kl_div_loss(Value input, Value target, Reduction reduction, bool log_target, Location at) {
  LossWriter write(*this, *state_, input, target, "kl_div", at);
  if (log_target)
    return write.reduced(write.op("Mul", {write.op("Exp", {target}), write.op("Sub", {target, input})}), reduction);
  // t * log(t) is 0 where t is.
  const Value is_zero = write.op("Equal", {target, write.number(0)});
  const Value own = write.op("Where", {is_zero, target, write.op("Mul", {target, write.op("Log", {target})})});
  return write.reduced(write.op("Sub", {own, write.op("Mul", {target, input})}), reduction);
}

}  // namespace tensorlint::builder

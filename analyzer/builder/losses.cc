// Losses of torch.nn.functional (2.13): a call of the domain `tensorlint` each, whose meaning is a function of the
// model.
#include "analyzer/builder/losses.h"

#include <fmt/format.h>

#include <utility>

#include "analyzer/builder/attributes.h"
#include "analyzer/builder/numbers.h"
#include "analyzer/builder/state.h"

namespace tensorlint::builder {

/// Writes the body of a function into the recording.
class LossWriter {
 public:
  LossWriter(State& state, const LossFunction& function) : state_(state), dtype_(function.dtype) {
    Recording& recording = state_.recording;
    Recording::Function head{.domain = State::kOwnDomain,
                             .name = function.op,
                             .overload = function.overload,
                             .attribute_names = function.attributes};
    head.opset_imports.push_back({NameId::kEmpty, state_.options.opset});
    recording.open_function(head);
    for (const std::string_view name : function.inputs)
      inputs_.push_back(recording.add_input(recording.intern(name), nullptr));
  }

  ValueId input() const { return inputs_[0]; }
  ValueId target() const { return inputs_[1]; }
  ValueId weight() const { return inputs_.size() > 2 ? inputs_[2] : ValueId::kAbsent; }

  ValueId op(std::string_view name, std::vector<ValueId> operands, const std::vector<Attr>& attributes = {},
             std::vector<std::string_view> references = {}) {
    Recording& recording = state_.recording;
    AttributeViews views(attributes, recording);
    std::vector<Attribute> given(views.views().begin(), views.views().end());
    for (const std::string_view reference : references) {
      Attribute& attribute = given.emplace_back();
      attribute.name = attribute.reference = reference;
      attribute.kind = reference == "reduction" ? AttributeKind::kString : AttributeKind::kInt;
    }
    while (!operands.empty() && operands.back() == ValueId::kAbsent) operands.pop_back();
    const NameId result[] = {recording.unused_name("step")};
    const NodeId node = recording.add_call({.op = name, .operands = operands, .results = result, .attributes = given});
    state_.growing.add_call(node);
    return state_.model().results(state_.model().node(node))[0];
  }
  ValueId number(double value) {
    return op("Constant", {}, {{"value", scalar_of(dtype_, value).value_or(Data(static_cast<float>(value)))}});
  }
  ValueId integers(std::vector<std::int64_t> values) {
    const auto count = static_cast<std::int64_t>(values.size());
    return op("Constant", {}, {{"value", Data(values, {count})}});
  }
  ValueId reduced(ValueId elements, Reduction reduction) {
    if (reduction == Reduction::kNone) return elements;
    return op(reduction == Reduction::kSum ? "ReduceSum" : "ReduceMean", {elements}, {{"keepdims", 0}});
  }
  void finish(ValueId loss) {
    const ValueId outputs[] = {op("Identity", {loss})};
    state_.recording.close_function(outputs);
  }

 private:
  State& state_;
  DType dtype_;
  std::vector<ValueId> inputs_;
};

namespace {

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

/// A loss on its way into the graph.
class LossCall {
 public:
  LossCall(State& state, std::string_view op, Value input, Value target, std::source_location at)
      : state_(state), op_(op), operands_{std::move(input), std::move(target)}, at_(at) {
    state_.check_operand(operands_[0], "the input of a loss", at_);
    state_.check_operand(operands_[1], "the target of a loss", at_);
  }

  /// What the body is written with has been in ONNX since then.
  LossCall& since(std::int64_t opset) {
    if (state_.options.opset < opset)
      State::misuse(at_, fmt::format("{} needs opset {}, the builder's is {}", op_, opset, state_.options.opset));
    return *this;
  }
  LossCall& weight(const Value& weight) {
    if (!weight) return *this;
    state_.check_operand(weight, "the weight of a loss", at_);
    operands_.push_back(weight);
    return *this;
  }
  LossCall& attribute(Attr attribute) { return attributes_.push_back(std::move(attribute)), *this; }
  LossCall& reduction(Reduction reduction) { return attribute({"reduction", std::string(to_text(reduction))}); }

  /// `variant`: what calls with another body differ in, besides the dtype of the numbers in it.
  Value add(std::string variant, std::function<ValueId(LossWriter&)> write) {
    const DType dtype = operands_[0].dtype().value_or(DType::kFloat32);
    const bool is_float = DTypeSet(dtype).is_subset_of(DTypeSet::floats());
    LossFunction function{.op = op_,
                          .overload = std::move(variant),
                          .inputs = {"input", "target"},
                          .attributes = {},
                          .dtype = is_float ? dtype : DType::kFloat32,
                          .write = std::move(write)};
    function.overload += fmt::format("_{}", tensorlint::to_text(function.dtype));
    if (operands_.size() > 2) {
      function.inputs.push_back("weight");
      function.overload += "_weighted";
    }
    std::vector<std::string> names;
    for (const Attr& attribute : attributes_)
      function.attributes.push_back(state_.model().text(state_.recording.intern(attribute.name())));
    const std::string overload = function.overload;
    Call call;
    call.attributes = std::move(attributes_);
    call.domain = State::kOwnDomain;
    const Value result = state_.handle(state_.add_call(op_, operands_, call, {}, at_, overload)[0]);
    state_.loss_functions.try_emplace(fmt::format("{} {}", op_, overload), std::move(function));
    return result;
  }

 private:
  State& state_;
  std::string_view op_;
  std::vector<Value> operands_;
  std::vector<Attr> attributes_;
  std::source_location at_;
};

/// log(probability), at least -100 as PyTorch has it.
ValueId clamped_log(LossWriter& write, ValueId probability) {
  return write.op("Max", {write.op("Log", {probability}), write.number(-100)});
}

/// |input - target| below `border`: a square, else a line.
ValueId bent(LossWriter& write, double border, double square_factor, double line_factor, Reduction reduction) {
  const ValueId distance = write.op("Abs", {write.op("Sub", {write.input(), write.target()})});
  const ValueId near = write.op("Less", {distance, write.number(border)});
  const ValueId square = write.op("Mul", {write.op("Mul", {distance, distance}), write.number(square_factor)});
  const ValueId line =
      write.op("Mul", {write.op("Sub", {distance, write.number(0.5 * border)}), write.number(line_factor)});
  return write.reduced(write.op("Where", {near, square, line}), reduction);
}

/// Scores [N, C, ...] against class indices, by an operator of ONNX that does all of it.
Value class_loss(State& state, std::string_view op, std::string_view of_onnx, const Value& input, const Value& target,
                 const ClassLoss& options, std::source_location at) {
  const bool is_row = input.rank() == 1;  // [C] and a single index
  const Reduction reduction = options.reduction;
  LossCall call(state, op, input, target, at);
  call.since(is_row ? 13 : 12).weight(options.weight).reduction(reduction);
  return call.attribute({"ignore_index", options.ignore_index})
      .add(fmt::format("{}{}", to_text(reduction), is_row ? "_row" : ""), [=](LossWriter& write) {
        const std::vector<std::string_view> references{"reduction", "ignore_index"};
        if (!is_row) return write.op(of_onnx, {write.input(), write.target(), write.weight()}, {}, references);
        const ValueId axes = write.integers({0});
        const ValueId rows = write.op("Unsqueeze", {write.input(), axes}),
                      one = write.op("Unsqueeze", {write.target(), axes});
        const ValueId loss = write.op(of_onnx, {rows, one, write.weight()}, {}, references);
        return reduction == Reduction::kNone ? write.op("Squeeze", {loss, axes}) : loss;
      });
}

}  // namespace

void State::write_losses() {
  for (auto& [key, function] : loss_functions) {
    if (!function.write) continue;
    LossWriter writer(*this, function);
    writer.finish(std::exchange(function.write, nullptr)(writer));
  }
}

Value Builder::mse_loss(Value input, Value target, Reduction reduction, Location at) {
  return LossCall(*state_, "MseLoss", input, target, at)
      .reduction(reduction)
      .add(std::string(to_text(reduction)), [=](LossWriter& write) {
        const ValueId difference = write.op("Sub", {write.input(), write.target()});
        return write.reduced(write.op("Mul", {difference, difference}), reduction);
      });
}

Value Builder::l1_loss(Value input, Value target, Reduction reduction, Location at) {
  return LossCall(*state_, "L1Loss", input, target, at)
      .reduction(reduction)
      .add(std::string(to_text(reduction)), [=](LossWriter& write) {
        return write.reduced(write.op("Abs", {write.op("Sub", {write.input(), write.target()})}), reduction);
      });
}

Value Builder::smooth_l1_loss(Value input, Value target, Reduction reduction, double beta, Location at) {
  if (!(beta >= 0)) State::misuse(at, fmt::format("beta is {}, it is at least 0", beta));
  if (beta == 0) return l1_loss(input, target, reduction, at);  // as PyTorch has it
  return LossCall(*state_, "SmoothL1Loss", input, target, at)
      .since(9)
      .reduction(reduction)
      .attribute({"beta", beta})
      .add(fmt::format("{}_{}", to_text(reduction), beta),
           [=](LossWriter& write) { return bent(write, beta, 0.5 / beta, 1, reduction); });
}

Value Builder::huber_loss(Value input, Value target, Reduction reduction, double delta, Location at) {
  if (!(delta > 0)) State::misuse(at, fmt::format("delta is {}, it is above 0", delta));
  return LossCall(*state_, "HuberLoss", input, target, at)
      .since(9)
      .reduction(reduction)
      .attribute({"delta", delta})
      .add(fmt::format("{}_{}", to_text(reduction), delta),
           [=](LossWriter& write) { return bent(write, delta, 0.5, delta, reduction); });
}

Value Builder::bce_loss(Value input, Value target, Reduction reduction, Location at) {
  return LossCall(*state_, "BceLoss", input, target, at)
      .since(8)
      .reduction(reduction)
      .add(std::string(to_text(reduction)), [=](LossWriter& write) {
        const ValueId one = write.number(1);
        const ValueId of_no = write.op(
            "Mul", {write.op("Sub", {write.target(), one}), clamped_log(write, write.op("Sub", {one, write.input()}))});
        const ValueId of_yes = write.op("Mul", {write.target(), clamped_log(write, write.input())});
        return write.reduced(write.op("Sub", {of_no, of_yes}), reduction);
      });
}

Value Builder::bce_with_logits_loss(Value input, Value target, Reduction reduction, Location at) {
  return LossCall(*state_, "BceWithLogitsLoss", input, target, at)
      .reduction(reduction)
      .add(std::string(to_text(reduction)), [=](LossWriter& write) {
        // log(sigmoid(x)) as -softplus(-x): exact where the sigmoid would be 0.
        const ValueId linear = write.op("Mul", {write.op("Sub", {write.number(1), write.target()}), write.input()});
        const ValueId curved = write.op("Softplus", {write.op("Neg", {write.input()})});
        return write.reduced(write.op("Add", {linear, curved}), reduction);
      });
}

Value Builder::cross_entropy_loss(Value input, Value target, ClassLoss options, Location at) {
  state_->check_operand(input, "the input of a loss", at);
  state_->check_operand(target, "the target of a loss", at);
  const auto dtype = target.dtype();
  const bool probabilities =
      dtype && DTypeSet::floats().contains(*dtype) && target.rank() && target.rank() == input.rank();
  if (!probabilities)
    return class_loss(*state_, "CrossEntropyLoss", "SoftmaxCrossEntropyLoss", input, target, options, at);
  const std::size_t rank = *input.rank();
  const Reduction reduction = options.reduction;
  LossCall call(*state_, "CrossEntropyLoss", input, target, at);
  return call.since(13)
      .weight(options.weight)
      .reduction(reduction)
      .attribute({"ignore_index", options.ignore_index})
      .add(fmt::format("{}_probabilities_{}", to_text(reduction), rank), [=](LossWriter& write) {
        const std::int64_t classes = rank == 1 ? 0 : 1;
        ValueId logarithm = write.op("LogSoftmax", {write.input()}, {{"axis", classes}});
        if (write.weight() != ValueId::kAbsent) {
          std::vector<std::int64_t> dims(rank, 1);
          dims[static_cast<std::size_t>(classes)] = -1;
          logarithm = write.op("Mul", {logarithm, write.op("Reshape", {write.weight(), write.integers(dims)})});
        }
        const ValueId products = write.op("Mul", {write.target(), logarithm});
        const ValueId sums = write.op("ReduceSum", {products, write.integers({classes})}, {{"keepdims", 0}});
        return write.reduced(write.op("Neg", {sums}), reduction);
      });
}

Value Builder::nll_loss(Value input, Value target, ClassLoss options, Location at) {
  return class_loss(*state_, "NllLoss", "NegativeLogLikelihoodLoss", input, target, options, at);
}

Value Builder::kl_div_loss(Value input, Value target, Reduction reduction, bool log_target, Location at) {
  LossCall call(*state_, "KlDivLoss", input, target, at);
  call.since(log_target ? 7 : 11).reduction(reduction).attribute({"log_target", log_target ? 1 : 0});
  return call.add(fmt::format("{}{}", to_text(reduction), log_target ? "_log" : ""), [=](LossWriter& write) {
    if (log_target)
      return write.reduced(
          write.op("Mul", {write.op("Exp", {write.target()}), write.op("Sub", {write.target(), write.input()})}),
          reduction);
    // t * log(t) is 0 where t is.
    const ValueId is_zero = write.op("Equal", {write.target(), write.number(0)});
    const ValueId own = write.op("Mul", {write.target(), write.op("Log", {write.target()})});
    const ValueId product = write.op("Mul", {write.target(), write.input()});
    return write.reduced(write.op("Sub", {write.op("Where", {is_zero, write.target(), own}), product}), reduction);
  });
}

}  // namespace tensorlint::builder

// Our own domain `tensorlint`, opset 1: losses as PyTorch defines them (torch.nn.functional, 2.13) and Transfer. The
// builder calls them, and writes what they mean as functions of the model; these entries hold all the same, and speak
// of the call's own operands.
#include "ir/ops/shape_functions.h"
#include "ir/schema/schema_builder.h"

namespace tensorlint::ops {
namespace {

const Constraint kLossShapes{"loss_shapes_equal", ConstraintKind::kShapes, "prediction and target have one shape"};
const Constraint kLossBroadcasts{"loss_shapes_broadcast", ConstraintKind::kShapes,
                                 "prediction and target broadcast to one shape"};
const Constraint kClassScores{"cross_entropy_shapes", ConstraintKind::kShapes,
                              "scores [N, C, d...] meet targets [N, d...]"};
const Constraint kClassProbabilities{"cross_entropy_probabilities", ConstraintKind::kShapes,
                                     "probabilities have the shape of the scores"};
const Constraint kClassWeights{"class_weights", ConstraintKind::kShapes, "one weight for each class"};
const Constraint kFloatIndex{"class_index_is_integer", ConstraintKind::kTypeConstraint, "class indices are int64"};
const Constraint kOneType{"probabilities_of_one_type", ConstraintKind::kMixedDtypes,
                          "probabilities have the dtype of the scores"};
const Constraint kTargetInRange{"cross_entropy_classes", ConstraintKind::kClassRange,
                                "0 <= class < C, or ignore_index"};

const DTypeSet kFloats = DTypeSet(DType::kFloat64) | DType::kFloat32 | DType::kFloat16 | DType::kBFloat16;
constexpr std::string_view kDomain = "tensorlint";

SchemaBuilder loss_schema(std::string_view name) {
  SchemaBuilder schema(kDomain, name);
  schema.type("T", kFloats)
      .input("input", "T")
      .input("target", "T")
      .output("loss", "T")
      .attribute("reduction", AttributeKind::kString, "mean");
  return schema;
}

SchemaBuilder class_loss_schema(std::string_view name, DTypeSet targets) {
  SchemaBuilder schema(kDomain, name);
  schema.type("T", kFloats)
      .type("I", targets)
      .input("input", "T")
      .input("target", "I")
      .input("weight", "T", FormalOption::kOptional)
      .output("loss", "T")
      .attribute("reduction", AttributeKind::kString, "mean")
      .attribute("ignore_index", AttributeKind::kInt, "-100");
  return schema;
}

std::vector<SchemaBuilder> schemas() {
  std::vector<SchemaBuilder> all{loss_schema("MseLoss"), loss_schema("L1Loss"), loss_schema("BceLoss")};
  all.push_back(loss_schema("SmoothL1Loss").attribute("beta", AttributeKind::kFloat, "1"));
  all.push_back(loss_schema("HuberLoss").attribute("delta", AttributeKind::kFloat, "1"));
  all.push_back(loss_schema("BceWithLogitsLoss").input("pos_weight", "T", FormalOption::kOptional));
  all.push_back(loss_schema("KlDivLoss").attribute("log_target", AttributeKind::kInt, "0"));
  all.push_back(class_loss_schema("CrossEntropyLoss", kFloats | DType::kInt64)
                    .attribute("label_smoothing", AttributeKind::kFloat, "0"));
  all.push_back(class_loss_schema("NllLoss", DType::kInt64));
  SchemaBuilder transfer(kDomain, "Transfer");
  transfer.type("T", DTypeSet::all())
      .input("x", "T")
      .output("y", "T")
      .required_attribute("device", AttributeKind::kString);
  all.push_back(std::move(transfer));
  return all;
}

const RegisterSchemas kSchemas{kDomain, /*complete=*/true, schemas};

bool keeps_elements(const Inference& in) { return in.string_attribute("reduction", "mean") == "none"; }

/// The reduced loss is a scalar; without reduction it has the extents of its elements.
void set_loss_shape(Inference& in, std::optional<std::span<const Dim>> elements) {
  if (!keeps_elements(in)) {
    in.set_shape(0, {});
  } else if (elements) {
    in.set_shape(0, *elements);
  }
}

/// Stretches operands as PyTorch does, where it warns and goes on.
void broadcasting_loss(Inference& in) {
  const auto input = in.shape("input"), target = in.shape("target");
  if (!input || !target) return set_loss_shape(in, std::nullopt);
  const Dims elements = broadcast(in, *input, *target, 0, 1, kLossBroadcasts);
  set_loss_shape(in, elements);
}

/// Of operands for which PyTorch asks for one shape.
void elementwise_loss(Inference& in) {
  const auto input = in.shape("input"), target = in.shape("target");
  if (input && target && input->size() != target->size()) {
    in.fail(kLossShapes, {1, 0},
            {"{} of shape {} is compared with {} of shape {}", OperandRef(0), *input, OperandRef(1), *target});
  } else if (input && target) {
    for (std::size_t i = 0; i < input->size() && !in.failed(); ++i)
      same_extent(in, (*input)[i], (*target)[i], 0, 1, kLossShapes, {"extents at axis {}", Axis(i)});
  }
  set_loss_shape(in, input);
}

std::size_t class_axis(std::span<const Dim> scores) { return scores.size() == 1 ? 0 : 1; }

/// Weights [C] of the classes.
void check_weights(Inference& in) {
  const auto input = in.shape("input"), weight = in.shape("weight");
  if (!in.has("weight") || !input || !weight || input->empty()) return;
  const int index = in.index_of("weight");
  if (weight->size() != 1) {
    in.fail(kClassWeights, {index, 0},
            {"{} of shape {} are not the weights of classes, one for each", OperandRef(index), *weight});
    return;
  }
  same_extent(in, (*input)[class_axis(*input)], (*weight)[0], 0, index, kClassWeights, {"classes and their weights"});
}

/// Targets that are probabilities, of the shape of the scores.
void probability_loss(Inference& in, std::span<const Dim> input, std::span<const Dim> target) {
  if (!in.operand("target").dtypes.intersects(in.operand("input").dtypes))
    in.fail(kOneType, {1, 0},
            {"{} are {} probabilities of {} scores {}", OperandRef(1), in.operand("target").dtypes,
             in.operand("input").dtypes, OperandRef(0)});
  for (std::size_t i = 0; i < input.size() && !in.failed(); ++i)
    same_extent(in, input[i], target[i], 0, 1, kClassProbabilities,
                {"extents at axis {} of the probabilities", Axis(i)});
  Dims rows;
  for (std::size_t i = 0; i < input.size(); ++i)
    if (i != class_axis(input)) rows.push_back(input[i]);
  set_loss_shape(in, rows);
}

/// The first class index that is outside of the classes.
void check_labels(Inference& in, std::int64_t classes) {
  const std::int64_t ignored = in.int_attribute("ignore_index", -100);
  const auto labels = in.elements("target");
  if (!labels) return;
  for (const Dim label : *labels) {
    const auto value = in.dims().as_constant(label);
    if (!value || *value == ignored || (*value >= 0 && *value < classes)) continue;
    in.fail(kTargetInRange, {1},
            {"class {} in {} is outside [0, {})", Index(in.dims().constant(*value)), OperandRef(1), classes});
    return;
  }
}

void class_loss(Inference& in) {
  const auto input = in.shape("input"), target = in.shape("target");
  check_weights(in);
  if (in.operand("target").dtypes.proves(DTypeSet::floats())) {
    if (input && target && input->size() == target->size() && !input->empty())
      return probability_loss(in, *input, *target);
    if (input && target)
      in.fail(kFloatIndex, {1}, {"class indices {} are {}", OperandRef(1), in.operand("target").dtypes});
    return set_loss_shape(in, std::nullopt);
  }
  if (input && target) {
    if (input->empty() || target->size() + 1 != input->size()) {
      in.fail(kClassScores, {1, 0},
              {"scores {} of shape {} need class indices of rank {}, {} has shape {}", OperandRef(0), *input,
               input->empty() ? 0 : input->size() - 1, OperandRef(1), *target});
    } else {
      // The class axis is axis 1, or axis 0 where there is no batch.
      const std::size_t axis = class_axis(*input);
      for (std::size_t i = 0; i < target->size() && !in.failed(); ++i)
        same_extent(in, (*input)[i + (i >= axis ? 1 : 0)], (*target)[i], 0, 1, kClassScores,
                    {"extents at axis {} of the targets", Axis(i)});
    }
  }
  if (input && !input->empty())
    if (const auto classes = in.dims().as_constant((*input)[class_axis(*input)])) check_labels(in, *classes);
  set_loss_shape(in, target);
}

void transfer(Inference& in) { in.set_same(0, 0); }

OpEntry broadcasting(std::string_view name, LossKind kind) {
  return OpEntry(name, kDomain).loss(kind, "input", "target").infer(broadcasting_loss).constraint(kLossBroadcasts);
}

OpEntry elementwise(std::string_view name, LossKind kind) {
  return OpEntry(name, kDomain).loss(kind, "input", "target").infer(elementwise_loss).constraint(kLossShapes);
}

OpEntry over_classes(std::string_view name, LossKind kind) {
  return OpEntry(name, kDomain)
      .loss(kind, "input", "target")
      .infer(class_loss)
      .constraint(kClassScores)
      .constraint(kClassWeights)
      .constraint(kTargetInRange);
}

const RegisterOps kRegisterTensorlintDomain{
    broadcasting("MseLoss", LossKind::kMse),
    broadcasting("L1Loss", LossKind::kL1),
    broadcasting("SmoothL1Loss", LossKind::kHuber),
    broadcasting("HuberLoss", LossKind::kHuber),
    elementwise("BceLoss", LossKind::kBinaryCrossEntropy),
    elementwise("BceWithLogitsLoss", LossKind::kBinaryCrossEntropyWithLogits),
    broadcasting("KlDivLoss", LossKind::kKlDivergence),
    over_classes("CrossEntropyLoss", LossKind::kCrossEntropy)
        .constraint(kClassProbabilities)
        .constraint(kOneType)
        .constraint(kFloatIndex),
    over_classes("NllLoss", LossKind::kNegativeLogLikelihood),
    OpEntry("Transfer", kDomain).computes(Opcode::kIdentity).device(DeviceRule::kArgument).infer(transfer),
};

}  // namespace
}  // namespace tensorlint::ops

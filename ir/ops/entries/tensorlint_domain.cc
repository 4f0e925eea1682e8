// The builder's own domain `tensorlint`, opset 1: losses as PyTorch defines them (torch.nn.functional, 2.13) and
// Transfer.
#include "ir/ops/shape_functions.h"
#include "ir/schema/schema_builder.h"

namespace tensorlint::ops {
namespace {

const Constraint kLossShapes{"loss_shapes_equal", ConstraintKind::kShapes, "prediction and target have one shape"};
const Constraint kClassScores{"cross_entropy_shapes", ConstraintKind::kShapes,
                              "scores [N, C, d...] meet targets [N, d...]"};
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

SchemaBuilder class_loss_schema(std::string_view name) {
  SchemaBuilder schema(kDomain, name);
  schema.type("T", kFloats)
      .type("I", DTypeSet(DType::kInt64))
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
  all.push_back(class_loss_schema("CrossEntropyLoss").attribute("label_smoothing", AttributeKind::kFloat, "0"));
  all.push_back(class_loss_schema("NllLoss"));
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

/// The reduced loss is a scalar; without reduction it has the target's extents.
void set_loss_shape(Inference& in, std::optional<std::span<const Dim>> elements) {
  if (!keeps_elements(in)) {
    in.set_shape(0, {});
  } else if (elements) {
    in.set_shape(0, *elements);
  }
}

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

void class_loss(Inference& in) {
  const auto input = in.shape("input"), target = in.shape("target");
  if (input && target) {
    if (input->empty() || target->size() + 1 != input->size()) {
      in.fail(kClassScores, {1, 0},
              {"scores {} of shape {} need class indices of rank {}, {} has shape {}", OperandRef(0), *input,
               input->empty() ? 0 : input->size() - 1, OperandRef(1), *target});
    } else {
      // The class axis is axis 1, or axis 0 where there is no batch.
      const std::size_t class_axis = input->size() == 1 ? 0 : 1;
      for (std::size_t i = 0; i < target->size() && !in.failed(); ++i)
        same_extent(in, (*input)[i + (i >= class_axis ? 1 : 0)], (*target)[i], 0, 1, kClassScores,
                    {"extents at axis {} of the targets", Axis(i)});
    }
  }
  if (const auto classes =
          input && !input->empty() ? in.dims().as_constant((*input)[input->size() == 1 ? 0 : 1]) : std::nullopt) {
    const std::int64_t ignored = in.int_attribute("ignore_index", -100);
    if (const auto labels = in.elements("target")) {
      for (const Dim label : *labels) {
        const auto value = in.dims().as_constant(label);
        if (!value || *value == ignored || (*value >= 0 && *value < *classes)) continue;
        in.fail(kTargetInRange, {1},
                {"class {} in {} is outside [0, {})", Index(in.dims().constant(*value)), OperandRef(1), *classes});
        break;
      }
    }
  }
  set_loss_shape(in, target);
}

void transfer(Inference& in) { in.set_same(0, 0); }

OpEntry elementwise(std::string_view name, LossKind kind) {
  return OpEntry(name, kDomain).loss(kind, "input", "target").infer(elementwise_loss).constraint(kLossShapes);
}

OpEntry over_classes(std::string_view name, LossKind kind) {
  return OpEntry(name, kDomain)
      .loss(kind, "input", "target")
      .infer(class_loss)
      .constraint(kClassScores)
      .constraint(kTargetInRange);
}

const RegisterOps kEntries{
    elementwise("MseLoss", LossKind::kMse),
    elementwise("L1Loss", LossKind::kL1),
    elementwise("SmoothL1Loss", LossKind::kHuber),
    elementwise("HuberLoss", LossKind::kHuber),
    elementwise("BceLoss", LossKind::kBinaryCrossEntropy),
    elementwise("BceWithLogitsLoss", LossKind::kBinaryCrossEntropyWithLogits),
    elementwise("KlDivLoss", LossKind::kKlDivergence),
    over_classes("CrossEntropyLoss", LossKind::kCrossEntropy),
    over_classes("NllLoss", LossKind::kNegativeLogLikelihood),
    OpEntry("Transfer", kDomain).computes(Opcode::kIdentity).device(DeviceRule::kArgument).infer(transfer),
};

}  // namespace
}  // namespace tensorlint::ops

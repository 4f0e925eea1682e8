#include "passes/placement/host_operands.h"

#include <algorithm>
#include <array>
#include <span>

namespace tensorlint::placement {
namespace {

struct HostOperands {
  std::string_view op;
  std::array<std::string_view, 5> operands;  // formal names in any version of the schema
};

// Operands of ai.onnx that say how to compute, not what on: shapes, axes, bounds, counts, scales. ONNX leaves open
// where they live; onnxruntime's CUDA provider asks for them on the host (OrtMemTypeCPUInput of each kernel's
// definition). By name; operators beginning with "Reduce" have `axes`.
constexpr HostOperands kHostOperands[] = {
    {"AffineGrid", {"size"}},
    {"BlackmanWindow", {"size"}},
    {"CenterCropPad", {"shape"}},
    {"Clip", {"min", "max"}},
    {"Col2Im", {"image_shape", "block_shape"}},
    {"ConstantOfShape", {"input"}},
    {"CumProd", {"axis"}},
    {"CumSum", {"axis"}},
    {"DFT", {"dft_length", "axis"}},
    {"Dropout", {"ratio", "training_mode"}},
    {"Expand", {"shape"}},
    {"HammingWindow", {"size"}},
    {"HannWindow", {"size"}},
    {"MaxUnpool", {"output_shape"}},
    {"MelWeightMatrix", {"num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz"}},
    {"NonMaxSuppression", {"max_output_boxes_per_class", "iou_threshold", "score_threshold"}},
    {"OneHot", {"depth"}},
    {"Pad", {"pads", "constant_value", "axes"}},
    {"Range", {"start", "limit", "delta"}},
    {"Reshape", {"shape"}},
    {"Resize", {"roi", "scales", "sizes"}},
    {"STFT", {"frame_step", "frame_length"}},
    {"SequenceAt", {"position"}},
    {"SequenceErase", {"position"}},
    {"SequenceInsert", {"position"}},
    {"Slice", {"starts", "ends", "axes", "steps"}},
    {"Split", {"split"}},
    {"SplitToSequence", {"split"}},
    {"Squeeze", {"axes"}},
    {"Tile", {"repeats", "tiles", "axis"}},
    {"TopK", {"K", "k"}},
    {"Trilu", {"k"}},
    {"Unsqueeze", {"axes"}},
    {"Upsample", {"scales"}},
};

constexpr std::string_view kIndexed[] = {"Gather",          "GatherElements", "GatherND",
                                         "ScatterElements", "Scatter",        "ScatterND"};

bool is_host_operand(std::string_view op, std::string_view operand) {
  if (op.starts_with("Reduce")) return operand == "axes";
  const auto known = std::lower_bound(std::begin(kHostOperands), std::end(kHostOperands), op,
                                      [](const HostOperands& row, std::string_view name) { return row.op < name; });
  if (known == std::end(kHostOperands) || known->op != op) return false;
  return std::find(known->operands.begin(), known->operands.end(), operand) != known->operands.end();
}

}  // namespace

OperandPlacement operand_placement(const Model& model, const Operator& op) {
  static_assert(std::is_sorted(std::begin(kHostOperands), std::end(kHostOperands),
                               [](const HostOperands& a, const HostOperands& b) { return a.op < b.op; }));
  OperandPlacement placement;
  if (op.schema == nullptr) {
    placement.is_opaque = true;
    return placement;
  }
  const std::string_view name = model.text(op.name);
  const ops::OpEntry* entry = ops::find_entry(model.text(op.domain), name, op.opset);
  const bool standard = op.domain == NameId::kEmpty;
  const auto inputs = op.schema->inputs;
  for (std::size_t i = 0; i < std::min<std::size_t>(inputs.size(), 64); ++i) {
    const bool declared = entry != nullptr && std::find(entry->host_operands().begin(), entry->host_operands().end(),
                                                        inputs[i].name) != entry->host_operands().end();
    if (declared || (standard && is_host_operand(name, inputs[i].name))) placement.host |= std::uint64_t{1} << i;
  }
  placement.results_on_host =
      (standard && (name == "Shape" || name == "Size")) || (entry != nullptr && entry->has(ops::OpTrait::kShapeOf));
  placement.is_index = standard && std::find(std::begin(kIndexed), std::end(kIndexed), name) != std::end(kIndexed);
  return placement;
}

}  // namespace tensorlint::placement

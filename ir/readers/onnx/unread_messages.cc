#include "ir/readers/onnx/unread_messages.h"

#include <algorithm>
#include <vector>

namespace tensorlint::onnx {
namespace {

struct Inner {
  WireMessage message;
  std::uint32_t field;
  WireMessage of;
};

using enum WireMessage;
constexpr Inner kInner[] = {
    {kTrainingInfo, 1, kGraph},  // initialization
    {kTrainingInfo, 2, kGraph},  // algorithm
    {kTrainingInfo, 3, kPlain},  // initialization_binding
    {kTrainingInfo, 4, kPlain},  // update_binding
    {kGraph, 1, kNode},
    {kGraph, 5, kTensor},      // initializer
    {kGraph, 11, kValueInfo},  // input
    {kGraph, 12, kValueInfo},  // output
    {kGraph, 13, kValueInfo},
    {kGraph, 14, kAnnotation},    // quantization_annotation
    {kGraph, 15, kSparseTensor},  // sparse_initializer
    {kGraph, 16, kPlain},         // metadata_props
    {kNode, 5, kAttribute},
    {kNode, 9, kPlain},  // metadata_props
    {kNode, 10, kDeviceConfiguration},
    {kAttribute, 5, kTensor},
    {kAttribute, 6, kGraph},
    {kAttribute, 10, kTensor},
    {kAttribute, 11, kGraph},
    {kAttribute, 14, kType},
    {kAttribute, 15, kType},
    {kAttribute, 22, kSparseTensor},
    {kAttribute, 23, kSparseTensor},
    {kTensor, 3, kPlain},         // segment
    {kTensor, 13, kPlain},        // external_data
    {kTensor, 16, kPlain},        // metadata_props
    {kSparseTensor, 1, kTensor},  // values
    {kSparseTensor, 2, kTensor},  // indices
    {kValueInfo, 2, kType},
    {kValueInfo, 4, kPlain},  // metadata_props
    {kType, 1, kTypeOfTensor},
    {kType, 4, kTypeOfElements},  // sequence
    {kType, 5, kTypeOfMap},
    {kType, 7, kPlain},           // opaque
    {kType, 8, kTypeOfTensor},    // sparse
    {kType, 9, kTypeOfElements},  // optional
    {kTypeOfTensor, 2, kShape},
    {kTypeOfElements, 1, kType},
    {kTypeOfMap, 2, kType},    // value_type
    {kShape, 1, kPlain},       // dim
    {kAnnotation, 2, kPlain},  // quant_parameter_tensor_names
    {kDeviceConfiguration, 2, kShardingSpec},
    {kShardingSpec, 3, kPlain},  // index_to_device_group_map
    {kShardingSpec, 4, kShardedDim},
    {kShardedDim, 2, kPlain},  // simple_sharding
};

}  // namespace

void pass_over(Cursor fields, WireMessage message) {
  // A body takes three levels: its node, the attribute, the graph.
  constexpr std::size_t kMaxDepth = 3 * 64;
  struct Open {
    Cursor fields;
    WireMessage message;
  };
  std::vector<Open> open{{fields, message}};
  while (!open.empty()) {
    Open& innermost = open.back();
    if (!innermost.fields.next()) {
      open.pop_back();
      continue;
    }
    const auto* const inner = std::ranges::find_if(kInner, [&](const Inner& each) {
      return each.message == innermost.message && each.field == innermost.fields.field();
    });
    // The library takes a field of another wire type as one that it does not know.
    if (inner == std::end(kInner) || innermost.fields.type() != WireType::length_delimited) {
      innermost.fields.skip();
      continue;
    }
    if (open.size() == kMaxDepth) innermost.fields.fail("messages that are not read nest deeper than 192");
    const Cursor within = innermost.fields.inside(innermost.fields.view("message"));
    open.push_back({within, inner->of});
  }
}

}  // namespace tensorlint::onnx

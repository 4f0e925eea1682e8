// Operators with subgraphs. Source: ONNX If, Loop, Scan, SequenceMap, all opsets.
// Their results are what the bodies compute: the dataflow solver follows these, so there is nothing to infer from one call.
#include "ir/ops/inference.h"

namespace tensorlint {
namespace {

const RegisterOps kControlFlow{
    OpEntry("If").trait(OpTrait::kControlFlow),
    OpEntry("Loop").trait(OpTrait::kControlFlow),
    OpEntry("Scan").trait(OpTrait::kControlFlow),
    OpEntry("SequenceMap").trait(OpTrait::kControlFlow),
};

}  // namespace
}  // namespace tensorlint

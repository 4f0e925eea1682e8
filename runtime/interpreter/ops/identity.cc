// Operators whose results are their operands as they are.
// Source: ONNX Identity (opset 1), Reshape (1, 5), Flatten, Squeeze, Unsqueeze.
#include "runtime/interpreter/evaluator.h"

namespace tensorlint::runtime {
namespace {

void same(Evaluation& e) { e.set(0, e.value(0)); }

/// The elements in their order, in the extents that inference gives.
void reshape(Evaluation& e) { e.set_reshaped(0, e.operand(0)); }

const RegisterEvaluators kIdentities{
    Evaluator("Identity").evaluate(same).error(Rounding::exact()),
    Evaluator("Reshape").evaluate(reshape).error(Rounding::exact()),
    Evaluator("Flatten").evaluate(reshape).error(Rounding::exact()),
    Evaluator("Squeeze").evaluate(reshape).error(Rounding::exact()),
    Evaluator("Unsqueeze").evaluate(reshape).error(Rounding::exact()),
};

}  // namespace
}  // namespace tensorlint::runtime

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

using ops::Opcode;

class SoftmaxOverSeveralAxes : public Rule {
 public:
  SoftmaxOverSeveralAxes()
      : Rule({"TL-S213", "softmax-over-several-axes", "shape", findings::Severity::kWarning,
              "a Softmax before opset 13 that names no axis and normalises over all axes from 1 on"}) {}

  bool wants(std::string_view, std::string_view, const ops::OpEntry* entry) const override {
    const Opcode opcode = opcode_of(entry);
    return opcode == Opcode::kSoftmax || opcode == Opcode::kLogSoftmax;
  }

  void check(const NodeCall& call, Reporter& out) const override {
    const Operand data = call.operand(0);
    const OpSchema* schema = call.op().schema;
    constexpr int kOneAxisSince = 13;
    if (!data.present() || schema == nullptr || schema->since_version >= kOneAxisSince || !schema->domain.empty() ||
        call.attribute("axis") != nullptr || data.taint().has(Aspect::kShape) || call.analysis().has_failed(call.id()))
      return;
    if (!call.facts().is_ranked(data.fact().shape)) return;
    const auto dims = call.facts().dims_of(data.fact().shape);
    const DimPool& pool = call.facts().dims();
    if (dims.size() < 3) return;
    const auto longer = std::count_if(dims.begin() + 1, dims.end(), [&](Dim dim) { return !pool.is_constant(dim, 1); });
    if (longer < 2) return;
    out.report(call.id(),
               fmt::format("{} names no axis, and before opset 13 that is one row of all axes from 1 on: {} of {}",
                           call.op_name(), call.facts().shape_text(data.fact().shape), data.name()))
        .origin(data, Aspect::kShape)
        .fix("give the axis of the classes, such as -1");
  }
};

const RegisterRule<SoftmaxOverSeveralAxes> kRegisterSoftmaxOverSeveralAxes;

}  // namespace
}  // namespace tensorlint::rules

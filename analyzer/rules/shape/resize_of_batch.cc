#include <fmt/format.h>

#include <vector>

#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class ResizeOfBatch : public Rule {
 public:
  ResizeOfBatch()
      : Rule({"TL-S212", "resize-of-batch", "shape", findings::Severity::kWarning,
              "a resize that scales samples and channels and leaves height and width"}) {}

  bool wants(std::string_view domain, std::string_view name, const ops::OpEntry*) const override {
    const OpSchema* schema = find_any_version(domain, name);
    return schema != nullptr && schema->input_index("scales") > 0;
  }

  void check(const NodeCall& call, Reporter& out) const override {
    const OpSchema* schema = call.op().schema;
    const int index = schema == nullptr ? -1 : schema->input_index("scales");
    if (index < 0 || call.analysis().has_failed(call.id())) return;
    const Operand scales = call.operand(static_cast<std::size_t>(index));
    if (!scales.present() || scales.taint().has(Aspect::kValue) || call.attribute("axes") != nullptr) return;
    const Content* content = call.analysis().content(scales.value());
    if (content == nullptr) return;
    const std::vector<double>& factors = content->floats;
    if (factors.size() < 4 || factors[0] == 1) return;
    for (std::size_t axis = 2; axis < factors.size(); ++axis)
      if (factors[axis] != 1) return;
    out.report(call.id(), fmt::format("{} scales axis 0, the samples, by {:.4g} and leaves the axes from 2 on",
                                      call.op_name(), factors[0]))
        .origin(scales, Aspect::kValue)
        .fix("give the scales in the order of the axes: 1 for samples and channels, then height and width");
  }
};

const RegisterRule<ResizeOfBatch> kRegisterResizeOfBatch;

}  // namespace
}  // namespace tensorlint::rules

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class ClassesOfSoftmaxAsTags : public Rule {
 public:
  ClassesOfSoftmaxAsTags()
      : Rule({"TL-L334", "classes-of-softmax-as-tags", "loss", findings::Severity::kWarning,
              "a binary cross-entropy of each of the probabilities of a softmax, which add up to 1"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (loss.kind != losses::LossKind::kBinaryCrossEntropy || analysis.has_failed(loss.anchor)) return;
    auto& [expressions, origins] = out.shared<losses::LossAxes>();
    const ValueId probabilities = before_clamp(expressions, loss.prediction);
    const auto softmax = expressions.normalised(probabilities);
    if (!softmax || softmax->logarithm || softmax->axes.size() != 1) return;
    const std::size_t axis = softmax->axes[0];
    const auto dims = expressions.dims(probabilities);
    const ValueId target = before_stretch(expressions, loss.target);
    if (axis >= dims.size() || target == ValueId::kAbsent || !is_input(analysis, target)) return;
    const DimPool& pool = analysis.facts().dims();
    const auto classes = pool.as_constant(dims[axis]);
    // Two classes are one question. A target of other extents is stretched: it is not one for each class.
    const auto labels = expressions.dims(target);
    if (!classes || *classes < 3 || labels.size() != dims.size() ||
        !std::ranges::equal(
            labels, dims, [&](Dim a, Dim b) { return pool.equal(a, b); }) ||
        origins.is_batch(probabilities, axis))
      return;
    // Floats may be probabilities that add up to 1 as well, unless they are called tags.
    if (!analysis.fact(target).dtypes.proves(DTypeSet::integers() | DTypeSet(DType::kBool)) &&
        !is_name_of_tags(telling_name(analysis, target)))
      return;
    out.report(
           loss.anchor,
           fmt::format("a binary cross-entropy asks for each of the {} classes alone, and a softmax gives {}, which "
                       "add up to 1: no two of them can be likely",
                       *classes, Operand(analysis, probabilities).name()))
        .note_at(softmax->node, "the probabilities are made here")
        .fix("take the sigmoid of the scores, or a cross-entropy where one class alone is right");
  }

 private:
  /// Of several things that a sample may have at once.
  static bool is_name_of_tags(std::string_view name) {
    constexpr std::array kMarks{"multihot", "multi_hot", "multilabel", "multi_label"};
    constexpr std::array kWords{"tags",     "genres",   "topics",      "keywords", "attributes", "findings",
                                "diseases", "symptoms", "ingredients", "emotions", "skills",     "tag_labels"};
    return std::ranges::any_of(kMarks, [&](std::string_view mark) { return name.find(mark) != name.npos; }) ||
           std::ranges::any_of(kWords, [&](std::string_view word) {
             return name.ends_with(word) && (name.size() == word.size() || name[name.size() - word.size() - 1] == '_');
           });
  }

  static ValueId before_clamp(const Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 6;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      const auto numbered = with_number(expressions, node);
      if (opcode == Opcode::kClip || opcode == Opcode::kIdentity || opcode == Opcode::kCast)
        value = expressions.operand(node, 0);
      else if (numbered && (opcode == Opcode::kMin || opcode == Opcode::kMax || opcode == Opcode::kAdd))
        value = numbered->value;
      else
        break;
    }
    return value;
  }
};

const RegisterRule<ClassesOfSoftmaxAsTags> kRegisterClassesOfSoftmaxAsTags;

}  // namespace
}  // namespace tensorlint::rules

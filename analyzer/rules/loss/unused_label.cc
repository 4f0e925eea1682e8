#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "base/letters.h"
#include "passes/losses/parameters.h"

namespace tensorlint::rules {
namespace {

class UnusedLabel : public Rule {
 public:
  UnusedLabel()
      : Rule({"TL-L420", "unused-label", "loss", findings::Severity::kWarning,
              "labels or a mask that go into a training step and that nothing reads"},
             {passes::Pass::kLiveness}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (view.liveness().has_broken_links) return;
    const dataflow::Analysis& analysis = view.analysis();
    const ValueId loss = loss_of(analysis, out);
    if (loss == ValueId::kAbsent) return;
    std::vector<Unused> unused;
    bool has_label = false;  // that is read
    for (const ValueId input : analysis.inputs(GraphId::kMain)) {
      if (input == ValueId::kAbsent || !is_input(analysis, input)) continue;
      const Kind kind = kind_of(telling_name(analysis, input));
      if (kind == Kind::kOther || is_scalar(analysis, input)) continue;
      if (!view.liveness().is_used(input))
        unused.push_back({input, kind});
      else
        has_label = has_label || kind == Kind::kLabel;
    }
    for (const auto& [input, kind] : Walk(std::span(unused), analysis.meter())) {
      // Data with labels of several kinds, or masks of pictures, serve steps that need one of them.
      if (has_label && (kind == Kind::kLabel || (kind == Kind::kMask && !is_row_for_each(analysis, input)))) continue;
      out.report_value(input, fmt::format("{} is used by nothing: the loss does not depend on it",
                                          Operand(analysis, input).name()))
          .note_at(analysis.model().value(loss).producer,
                   fmt::format("the loss {} is computed here", Operand(analysis, loss).name()))
          .fix(kind == Kind::kLabel ? "compare the prediction with it, or take it out of the inputs"
                                    : "leave out what it hides, or take it out of the inputs");
    }
  }

 private:
  enum class Kind : std::uint8_t {
    kOther,
    kLabel,
    kMask,         ///< of pictures, or of steps
    kMaskOfSteps,  ///< as the name says
  };
  struct Unused {
    ValueId input = ValueId::kAbsent;
    Kind kind = Kind::kOther;
  };

  /// A number that weights go into: without axes, or called a loss. A model for use may give one score as well.
  static ValueId loss_of(const dataflow::Analysis& analysis, Reporter& out) {
    for (const ValueId output : one_float_outputs(analysis)) {
      if (analysis.model().value(output).producer == NodeId::kNone) continue;
      const bool is_loss = is_scalar(analysis, output) || has_any(words_of(telling_name(analysis, output)), {"loss"});
      if (is_loss && out.shared<losses::Parameters>().reach(output)) return output;
    }
    return ValueId::kAbsent;
  }

  static bool is_scalar(const dataflow::Analysis& analysis, ValueId value) {
    const Fact& fact = analysis.fact(value);
    return fact.kind == ValueKind::kTensor && analysis.facts().is_ranked(fact.shape) &&
           analysis.facts().dims_of(fact.shape).empty();
  }

  /// A mask of steps has a row for each sample; one of pictures has more axes.
  static bool is_row_for_each(const dataflow::Analysis& analysis, ValueId mask) {
    const Fact& fact = analysis.fact(mask);
    return fact.kind == ValueKind::kTensor && analysis.facts().is_ranked(fact.shape) &&
           analysis.facts().dims_of(fact.shape).size() <= 2;
  }

  static Kind kind_of(std::string_view name) {
    const std::vector<std::string> words = words_of(name);
    if (has_any(words, {"mask"}))
      return has_any(words, {"attention", "padding", "loss"}) ? Kind::kMaskOfSteps : Kind::kMask;
    const bool is_y = words == std::vector<std::string>{"y"} || words == std::vector<std::string>{"y", "true"};
    return is_y || has_any(words, {"label", "labels", "target", "targets", "tgt", "gt"}) ? Kind::kLabel : Kind::kOther;
  }

  /// In lower case, between `_`, `.` and digits.
  static std::vector<std::string> words_of(std::string_view name) {
    std::vector<std::string> words;
    bool is_new = true;
    for (const char c : name) {
      const bool ends = c == '_' || c == '.' || (c >= '0' && c <= '9');
      if (!ends) {
        if (is_new) words.emplace_back();
        words.back().push_back(lower_case(c));
      }
      is_new = ends;
    }
    return words;
  }

  static bool has_any(const std::vector<std::string>& words, std::initializer_list<std::string_view> wanted) {
    return std::ranges::any_of(
        words, [&](const std::string& word) { return std::ranges::find(wanted, word) != wanted.end(); });
  }
};

const RegisterRule<UnusedLabel> kRegisterUnusedLabel;

}  // namespace
}  // namespace tensorlint::rules

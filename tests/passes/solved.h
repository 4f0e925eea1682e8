#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/text/reader.h"
#include "passes/dataflow/analysis.h"
#include "tests/ops/broken_constraints.h"

namespace tensorlint::dataflow {

/// A model in text and what the solver makes of it.
class Solved {
 public:
  explicit Solved(std::string text, const AnalysisOptions& options = {}) : text_(std::move(text)) {
    Result<Model> read = read_onnx_text(text_, "test.onnxtxt");
    EXPECT_TRUE(read) << (read ? "" : read.error().message);
    model_ = std::move(*read);
    analysis_ = analyse(model_, options);
    ops::note_broken(analysis_);
  }

  std::string fact(std::string_view name) const {
    for (std::size_t g = 0; g < model_.graphs.size(); ++g) {
      const ValueId value = model_.find_value(static_cast<GraphId>(g), name);
      if (value == ValueId::kAbsent) continue;
      const std::string text = analysis_.facts().to_text(analysis_.fact_id(value));
      return text.substr(0, text.find(" on "));
    }
    return "no such value";
  }

  std::vector<std::string> failures() const {
    std::vector<std::string> labels;
    for (const NodeViolation& violation : analysis_.violations())
      labels.push_back(fmt::format("{}: {}", model_.label(violation.node), violation.constraint->label));
    return labels;
  }

  /// "constraint label: message" of each violation, names filled in as {0}, {r0}.
  std::vector<std::string> messages() const {
    std::vector<std::string> texts;
    for (const NodeViolation& violation : analysis_.violations())
      texts.push_back(
          fmt::format("{}: {}", violation.constraint->label, to_text(violation.message, analysis_.facts())));
    return texts;
  }

  /// Integer elements as text: "2 N ?"; "none" where nothing is known of them.
  std::string content(std::string_view name) const {
    const Content* content = analysis_.facts().content(analysis_.fact(value(name)).content);
    if (content == nullptr) return "none";
    std::string text;
    for (const Dim element : content->integers)
      text += (text.empty() ? "" : " ") + analysis_.facts().dims().to_text(element);
    for (const double element : content->floats) text += (text.empty() ? "" : " ") + fmt::format("{}", element);
    return text;
  }

  const Range& range(std::string_view name) const { return analysis_.fact(value(name)).range; }

  /// The first value of that name, whichever graph it is in.
  ValueId value(std::string_view name) const {
    for (std::size_t g = 0; g < model_.graphs.size(); ++g)
      if (const ValueId found = model_.find_value(static_cast<GraphId>(g), name); found != ValueId::kAbsent)
        return found;
    return ValueId::kAbsent;
  }

  const Analysis& analysis() const { return analysis_; }
  const Model& model() const { return model_; }

 private:
  std::string text_;
  Model model_;
  Analysis analysis_;
};

using Labels = std::vector<std::string>;

inline std::string with_header(std::string_view graph) {
  return fmt::format("<ir_version: 10, opset_import: [\"\": 21]>\n{}", graph);
}

}  // namespace tensorlint::dataflow

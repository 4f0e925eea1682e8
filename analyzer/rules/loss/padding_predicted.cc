#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/loss/token_shift.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

/// nn.Embedding keeps the row of `padding_idx` 0: where words that are looked up in such a table are labels, too, those
/// of padding are among them.
class PaddingPredicted : public Rule {
 public:
  PaddingPredicted()
      : Rule({"TL-L395", "padding-predicted", "loss", findings::Severity::kWarning,
              "labels among which is the padding of sequences, which the loss counts like words"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const dataflow::Analysis& analysis = view.analysis();
    for (const losses::LossSite& loss : view.losses()) {
      if (!ops::takes_class_indices(loss.kind) || loss.anchor == NodeId::kNone || analysis.has_failed(loss.anchor) ||
          loss.target == ValueId::kAbsent)
        continue;
      const NodeCall call(analysis, loss.anchor);
      if (call.entry() == nullptr || !call.entry()->loss() || call.operand(2).value() != ValueId::kAbsent) continue;
      const Attribute* reduction = call.attribute("reduction");
      if (reduction != nullptr && reduction->s == "none") continue;  // some may be left out later
      check_loss(out.shared<losses::LossAxes>().expressions, call, loss.target, out);
    }
  }

 private:
  struct Padding {
    NodeId lookup = NodeId::kNone;
    std::int64_t number = 0;
  };

  static void check_loss(const Expressions& expressions, const NodeCall& call, ValueId target, Reporter& out) {
    const ValueId labels = before_views(expressions, target);
    const ValueId words = before_views(expressions, steps_of(expressions, labels).of);
    const auto padding = words != ValueId::kAbsent && is_input(call.analysis(), words)
                             ? padding_of(expressions, words, out)
                             : std::nullopt;
    const Attribute* ignored = call.attribute("ignore_index");
    if (!padding || (ignored != nullptr && ignored->i == padding->number)) return;
    out.report(call.id(), fmt::format("{1} is filled up with {0}, and the loss counts these steps like words",
                                      padding->number, Operand(call.analysis(), words).name()))
        .note_at(padding->lookup,
                 fmt::format("it is looked up here, in a table whose row {} is kept 0 for padding", padding->number))
        .fix(fmt::format("leave them out: ignore_index={}", padding->number));
  }

  /// Of a table in which the words are looked up.
  static std::optional<Padding> padding_of(const Expressions& expressions, ValueId words, Reporter& out) {
    constexpr std::size_t kMaxValues = 12;
    std::vector<ValueId> same{words};
    for (std::size_t i = 0; i < same.size() && same.size() < kMaxValues; ++i)
      for (const NodeId user : expressions.users(same[i])) {
        const Opcode opcode = expressions.op(user);
        if (opcode == Opcode::kGather && expressions.operand(user, 1) == same[i])
          if (const auto number = padding_row(expressions, user, out)) return Padding{user, *number};
        const ValueId result = expressions.result(user);
        if (result != ValueId::kAbsent && expressions.operand(user, 0) == same[i] &&
            (opcode == Opcode::kSlice || opcode == Opcode::kCast || ops::keeps_elements(opcode)))
          same.push_back(result);
      }
    return std::nullopt;
  }

  static std::optional<std::int64_t> padding_row(const Expressions& expressions, NodeId lookup, Reporter& out) {
    const ValueId table = before_stretch(expressions, expressions.operand(lookup, 0));
    const auto rows = expressions.dims(table);
    const auto count = rows.size() == 2 ? expressions.analysis().facts().dims().as_constant(rows[0]) : std::nullopt;
    if (!count || !expressions.analysis().fact(table).dtypes.proves(DTypeSet::floats())) return std::nullopt;
    const std::string_view written = out.locations().metadata(lookup, "pkg.torch.onnx.fx_node");
    if (!written.empty()) return row_written(expressions, written, *count);
    const Tensor* tensor = expressions.analysis().model().value(table).initializer;
    return tensor == nullptr ? std::nullopt : row_of_zeros(expressions, *tensor, *count);
  }

  /// "... torch.ops.aten.embedding.default](args = (%weight, %words, 0), ..."
  static std::optional<std::int64_t> row_written(const Expressions& expressions, std::string_view written,
                                                 std::int64_t count) {
    constexpr std::string_view kCall = "aten.embedding.default](args = (";
    constexpr std::size_t kMaxWritten = 1024;
    expressions.charge(16 + std::min(written.size(), kMaxWritten));
    written = written.substr(0, kMaxWritten);
    std::size_t at = written.find(kCall);
    if (at == std::string_view::npos) return std::nullopt;
    written = written.substr(at + kCall.size());
    for (int operand = 0; operand < 2; ++operand) {
      at = written.find(", ");
      if (at == std::string_view::npos) return std::nullopt;
      written = written.substr(at + 2);
    }
    std::int64_t row = -1;
    const auto [end, error] = std::from_chars(written.data(), written.data() + written.size(), row);
    return error == std::errc() && row >= 0 && row < count ? std::optional(row) : std::nullopt;
  }

  /// One of those that stand for padding usually; the others have numbers.
  static std::optional<std::int64_t> row_of_zeros(const Expressions& expressions, const Tensor& table,
                                                  std::int64_t count) {
    constexpr std::int64_t kAsked = 4;
    const std::string_view bytes = table.has_raw ? table.raw : table.typed;
    if (table.external || count <= kAsked || bytes.empty() || bytes.size() % static_cast<std::size_t>(count) != 0)
      return std::nullopt;
    const std::size_t width = bytes.size() / static_cast<std::size_t>(count);
    constexpr std::size_t kMaxWidth = 1 << 16;
    if (width > kMaxWidth) return std::nullopt;
    expressions.charge(width);
    std::optional<std::int64_t> found;
    for (const std::int64_t row : {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, count - 1}) {
      const std::string_view elements = bytes.substr(static_cast<std::size_t>(row) * width, width);
      if (elements.find_first_not_of('\0') != std::string_view::npos) continue;
      if (found) return std::nullopt;
      found = row;
    }
    return found;
  }
};

const RegisterRule<PaddingPredicted> kRegisterPaddingPredicted;

}  // namespace
}  // namespace tensorlint::rules

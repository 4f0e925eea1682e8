#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>

#include "analyzer/rules/rule.h"
#include "base/hash.h"
#include "ir/ops/opcode.h"

namespace tensorlint::rules {
namespace {

class KeysNeverMatch : public Rule {
 public:
  KeysNeverMatch()
      : Rule({"TL-V541", "keys-never-match", "value", findings::Severity::kWarning,
              "words in one case that are looked up among keys in the other"}) {}

  bool wants(std::string_view domain, std::string_view name, const ops::OpEntry*) const override {
    const OpSchema* schema = find_any_version(domain, name);
    return schema != nullptr &&
           std::ranges::any_of(kKeys, [&](std::string_view keys) { return schema->attribute(keys) != nullptr; });
  }

  void check(const NodeCall& call, Reporter& out) const override {
    const NodeId normaliser = changes_case(call);
    if (normaliser == NodeId::kNone) return;
    const bool is_upper = NodeCall(call.analysis(), normaliser).attribute("case_change_action")->s == "UPPER";
    for (const std::string_view name : kKeys) {
      const Attribute* keys = call.attribute(name);
      if (keys == nullptr || keys->strings.empty()) continue;
      call.facts().meter().charge(keys->strings.size());
      const std::unordered_set<std::string_view, TextHash> known(keys->strings.begin(), keys->strings.end());
      std::size_t with_letters = 0, lost = 0;
      std::string_view example;
      for (const std::string_view key : keys->strings) {
        const std::string changed = in_case(key, is_upper);
        if (changed == in_case(key, !is_upper)) continue;
        ++with_letters;
        // The same word may be there twice.
        if (changed == key || known.contains(changed)) continue;
        if (lost++ == 0) example = key;
      }
      if (lost == 0 || 2 * lost < with_letters) return;
      out.report(call.id(), fmt::format("{} of {} keys of {} never match: {} is in {} case", lost, keys->strings.size(),
                                        call.op_name(), call.operand(0).name(), is_upper ? "upper" : "lower"))
          .note_at(normaliser,
                   fmt::format("a word like `{}` is changed to `{}` here", example, in_case(example, is_upper)))
          .fix(fmt::format("make the case {}, or write the keys in {} case", is_upper ? "LOWER" : "UPPER",
                           is_upper ? "upper" : "lower"));
      return;
    }
  }

 private:
  static constexpr std::string_view kKeys[] = {"keys_strings", "classes_strings", "cats_strings", "pool_strings"};

  /// Letters of ASCII alone: what becomes of others depends on the locale.
  static std::string in_case(std::string_view text, bool upper) {
    std::string changed(text);
    for (char& c : changed)
      if (upper ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z') c = static_cast<char>(upper ? c - 32 : c + 32);
    return changed;
  }

  /// The node that puts all words into one case; kNone where there is none.
  static NodeId changes_case(const NodeCall& call) {
    constexpr int kMaxSteps = 8;
    Operand at = call.operand(0);
    for (int step = 0; step < kMaxSteps && at.present(); ++step) {
      const NodeId node = call.model().value(at.value()).producer;
      if (node == NodeId::kNone) break;
      const NodeCall before(call.analysis(), node);
      if (const Attribute* action = before.attribute("case_change_action"); action != nullptr)
        return action->s == "UPPER" || action->s == "LOWER" ? node : NodeId::kNone;
      if (!ops::picks_elements(opcode_of(before.entry()))) break;
      at = before.operand(0);
    }
    return NodeId::kNone;
  }
};

const RegisterRule<KeysNeverMatch> kRegisterKeysNeverMatch;

}  // namespace
}  // namespace tensorlint::rules

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/rules/structure_faults.h"
#include "base/escape.h"
#include "base/hash.h"

namespace tensorlint::rules {
namespace {

class DuplicateDefinition : public Rule {
 public:
  DuplicateDefinition()
      : Rule({"TL-G608", "duplicate-definition", "graph", findings::Severity::kError,
              "a name, function or opset that is defined twice", kFilesOnly}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    for (const StructureFault& fault : view.model().faults) {
      const bool meant = fault.kind == StructureFault::Kind::kDuplicateDefinition ||
                         fault.kind == StructureFault::Kind::kDuplicateFunction ||
                         fault.kind == StructureFault::Kind::kDuplicateOpsetImport;
      // A node that is in the file twice defines all of its results again.
      const bool same_node =
          meant && fault.node != NodeId::kNone && !out.first(std::to_string(static_cast<std::uint32_t>(fault.node)));
      if (meant && !same_node) report_fault(out, fault);
    }
    check_node_names(view, out);
  }

 private:
  static constexpr std::size_t kNodesAhead = 8;

  /// Names lie apart in the file, and reading them takes most of the time.
  static void ask_for_name(const Model& model, std::size_t node) {
    if (node >= model.nodes.size()) return;
    constexpr std::size_t kCacheLine = 64, kMostLines = 4;
    const std::string_view name = model.text(model.node(static_cast<NodeId>(node)).name);
    for (std::size_t at = 0; at < std::min(name.size(), kMostLines * kCacheLine); at += kCacheLine)
      __builtin_prefetch(name.data() + at);
  }

  /// Two nodes of one graph with one name, which ONNX Runtime refuses.
  static void check_node_names(const ModelView& view, Reporter& out) {
    const Model& model = view.model();
    std::size_t size = 16;
    while (size < 2 * model.nodes.size()) size *= 2;
    struct Slot {
      std::uint32_t hash = 0, place = 0;  // a node's index plus 1
    };
    std::vector<Slot> slots(size);  // open addressing
    for (const NodeId id : view.analysis().nodes()) {
      const Node& node = model.node(id);
      ask_for_name(model, static_cast<std::size_t>(id) + kNodesAhead);
      const std::string_view name = model.text(node.name);
      if (name.empty() || model.graph(node.graph).kind == GraphKind::kFunction) continue;
      if (opcode_of(view.analysis().entry(node)) == ops::Opcode::kConstant) continue;  // becomes an initializer
      const std::uint64_t hash = table_hash(table_hash(name), static_cast<std::uint64_t>(node.graph));
      const auto tag = static_cast<std::uint32_t>(hash >> 32);
      const auto is_same = [&](const Slot& slot) {
        if (slot.hash != tag) return false;
        const Node& other = model.node(static_cast<NodeId>(slot.place - 1));
        return other.graph == node.graph && model.text(other.name) == name;
      };
      std::size_t at = hash & (size - 1);
      while (slots[at].place != 0 && !is_same(slots[at])) at = (at + 1) & (size - 1);
      if (slots[at].place == 0) {
        slots[at] = {tag, static_cast<std::uint32_t>(id) + 1};
      } else if (out.first(std::to_string(static_cast<std::uint32_t>(id)))) {  // not what defines its results again
        out.report(id, fmt::format("two nodes have the name {}", quoted_for_people(name)))
            .note_at(static_cast<NodeId>(slots[at].place - 1), "the other node");
      }
    }
  }
};

const RegisterRule<DuplicateDefinition> kRegisterDuplicateDefinition;

}  // namespace
}  // namespace tensorlint::rules

#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyzer/builder/losses.h"
#include "analyzer/findings/finding.h"
#include "analyzer/rules/call_rules.h"
#include "ir/recording/recording.h"
#include "passes/dataflow/growing_analysis.h"
#include "passes/placement/growing_devices.h"
#include "passes/results/pass_results.h"
#include "tensorlint/builder.h"

namespace tensorlint::builder {

/// The graph of a Builder: a recording, what is known of it, and what only programs that build have: lines, scopes,
/// devices that were asked for.
struct State {
  using Location = std::source_location;
  static constexpr std::size_t kMaxResults = 1024;  ///< of one call
  static constexpr std::string_view kOwnDomain = "tensorlint";

  struct CallNote {
    Location at;
    std::uint32_t scope = 0;
    placement::GrowingDevices::Number device = placement::GrowingDevices::kUnknown;  ///< where it has to run
  };
  struct ValueNote {       ///< of an input or a constant
    std::string device{};  ///< canonical; empty: nothing is said
    bool trained = false;
  };
  struct ScopeNames {
    std::string prefix;  ///< "encoder.layers.0."
    std::string
        modules;  ///< of the exporter's name scopes all but the node's own: "['', 'encoder', 'encoder.layers.0', "
  };

  State(Options given, Location at);

  // ---- what calls add
  Value handle(ValueId id) { return {this, static_cast<std::uint32_t>(id)}; }
  static ValueId id_of(const Value& value) {
    return value.state_ == nullptr ? ValueId::kAbsent : static_cast<ValueId>(value.index_);
  }
  static State* owner(const Value& value) { return value.state_; }  ///< null for an absent one

  Value add_input(std::string_view name, DType dtype, const Shape& shape, std::optional<Data> initial,
                  std::string_view device, bool trained, Location at);
  Value add_constant(Data data, std::string_view name, std::string_view device, Location at);
  /// The results, valid until the next call.
  std::span<const ValueId> add_call(std::string_view op, std::span<const Value> operands, const Call& call,
                                    std::span<const std::pair<std::string_view, GraphId>> bodies, Location at,
                                    std::string_view overload = {});
  /// A node of ONNX's own with one result, of operands that all have to be there.
  Value call(std::string_view op, std::initializer_list<Value> operands, std::vector<Attr> attributes, Location at) {
    return call(op, std::span(operands.begin(), operands.size()), std::move(attributes), at);
  }
  Value call(std::string_view op, std::span<const Value> operands, std::vector<Attr> attributes, Location at);
  /// A node of a value and a number, which has the value's dtype and place; `first`: the number comes first.
  Value number_like(Value value, Number number, std::string_view op, Location at, bool first = false);

  void open_body(std::string_view name);
  Value add_body_input(std::string_view name, FactId fact, placement::GrowingDevices::Number device);
  GraphId close_body(std::span<const Value> outputs, Location at);
  void abandon_body(GraphId body);

  std::int64_t version(std::string_view domain) const;
  void import(std::string_view domain);
  /// The name after the scopes around it: "encoder.layers.0.name".
  std::string scoped(std::string_view name) const { return scopes[scope].prefix + std::string(name); }
  bool is_taken(std::string_view name) const;
  std::string canonical(std::string_view device, Location at) const;
  /// Where the value is, as far as calls in a row decide it; empty for the cpu and where that is not known.
  std::string device_of(const Value& value) const;
  static void check_data(const Data& data, Location at);
  /// `what`: a text, or what makes it.
  template <typename What>
  void check_operand(const Value& value, const What& what, Location at) const {
    if (value.state_ == this && recording.is_visible(id_of(value))) return;
    if constexpr (std::is_invocable_v<What>) {
      refuse_operand(value, what(), at);
    } else {
      refuse_operand(value, std::string(what), at);
    }
  }
  [[noreturn]] void refuse_operand(const Value& value, const std::string& what, Location at) const;
  [[noreturn]] static void misuse(Location at, const std::string& message);

  // ---- facts and findings
  const Model& model() const { return recording.model(); }
  const dataflow::Analysis& analysis() const { return growing.analysis(); }
  FactStore& facts() const { return analysis().facts(); }
  const Fact& fact(const Value& value) const { return analysis().fact(id_of(value)); }
  /// Keeps findings and tells them, at the end of the call that the program made.
  void deliver();
  /// What follows from devices that are not together, or from what a body does with them.
  void check_placement();
  /// Where values are, by all calls so far.
  const passes::PassResults& placement();
  std::vector<Finding> check();
  Finding to_public(const tensorlint::findings::Finding& found) const;
  Place place_of(const Location& at) const;
  const CallNote* note_of(std::string_view node) const;
  const std::vector<std::string>& lines_of(std::string_view file) const;

  /// The model with what is known as declared types and the functions of losses, as it is written.
  const Model& complete();
  void write_losses();

  Options options;
  Recording recording;
  dataflow::GrowingAnalysis growing;
  placement::GrowingDevices devices;
  rules::CallRules rules;

  std::vector<CallNote> notes;  // by node
  std::unordered_map<ValueId, ValueNote> value_notes;
  std::vector<NodeId> node_by_name;  // by the name's number
  std::vector<ScopeNames> scopes{{}};
  std::uint32_t scope = 0;  ///< in which calls are made
  std::map<std::string, std::int64_t, std::less<>> imports;
  std::map<std::string, LossFunction, std::less<>> loss_functions;  ///< by operator and overload
  bool uses_devices = false;
  bool has_trained = false;
  int composite_depth = 0;  ///< inside a call that adds several nodes
  bool is_placement_due = false;

  std::uint64_t edits = 0, placed_edits = 0;
  std::unique_ptr<passes::PassResults> placed;
  std::vector<tensorlint::findings::Finding> pending;
  std::vector<Finding> findings;
  mutable std::map<std::string, std::vector<std::string>, std::less<>> sources;

  // Kept for the next call.
  std::vector<ValueId> operand_ids;
  std::vector<NameId> result_names;
  std::string text;
};

/// Nodes that belong to one call: reported together, at its end.
class Composite {
 public:
  explicit Composite(State& state) : state_(state) { ++state_.composite_depth; }
  Composite(const Composite&) = delete;
  Composite& operator=(const Composite&) = delete;
  ~Composite() {
    if (!is_finished_) --state_.composite_depth;
  }
  void finish() {
    is_finished_ = true;
    --state_.composite_depth;
    state_.deliver();
  }

 private:
  State& state_;
  bool is_finished_ = false;
};

}  // namespace tensorlint::builder

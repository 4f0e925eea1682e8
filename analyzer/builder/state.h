#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analyzer/findings/finding.h"
#include "ir/facts/fact.h"
#include "ir/graph/model.h"
#include "ir/ops/inference.h"
#include "passes/dataflow/analysis.h"
#include "passes/placement/placement.h"
#include "tensorlint/builder.h"

namespace tensorlint::builder {

/// The graph behind a Builder. Facts of plain calls are inferred one by one; a call that closes bodies, and one that
/// looks wrong, makes a Model of the graph so far and analyses that as a whole, so that solver and rules are those of
/// `check`.
struct State {
  using Location = std::source_location;
  static constexpr std::uint32_t kNone = 0xffff'ffffU;

  enum class Origin : std::uint8_t { kInput, kBodyInput, kConstant, kResult };

  struct Item {  ///< a value
    std::string name;
    Origin origin = Origin::kInput;
    std::uint32_t graph = 0;
    std::uint32_t node = kNone;          ///< kResult
    std::shared_ptr<const Data> data{};  ///< kConstant; the default of a kInput
    DType dtype = DType::kUndefined;     ///< declared: kInput
    Shape shape{};
    std::string device{};  ///< canonical tag of a kInput or kConstant
    bool trained = false;
    std::string guessed_device{};  ///< where it probably is: only decides whether a call is looked at more closely
    FactId fact = FactId::kTop;
    Taint taint{};
  };
  struct BodyAttribute {
    std::string name;
    std::uint32_t graph = 0;
  };
  struct Step {  ///< a node
    std::string op, domain, name, device;
    std::vector<std::uint32_t> operands, results;  ///< kNone: left out
    std::vector<Attr> attributes;
    std::vector<BodyAttribute> bodies;
    std::string scopes;    ///< of the exporter's name scopes all but the node's own: "['', 'encoder', "; empty: none
    std::string metadata;  ///< the loss that it is part of, as PyTorch's exporter names it in `namespace`; else empty
    Location at;
  };
  struct Body {  ///< a graph; [0] is main
    std::string name;
    std::uint32_t parent = kNone;
    std::vector<std::uint32_t> inputs{}, outputs{}, steps{};
    bool open = true;
  };

  State(Options given, Location at);

  // ---- what calls add
  Value handle(std::uint32_t index) { return {this, index}; }
  const Item& item(Value value) const { return items[value.index_]; }
  static std::uint32_t index_of(Value value) { return value ? value.index_ : kNone; }
  static State* owner(const Value& value) { return value.state_; }  ///< null for an absent one

  std::uint32_t add_item(Item item);
  Value add_input(std::string_view name, DType dtype, Shape shape, std::shared_ptr<const Data> initial,
                  std::string_view device, bool trained, Location at);
  Value add_constant(Data data, std::string_view name, std::string_view device, Location at);
  std::vector<Value> add_step(std::string_view op, const std::vector<Value>& operands, Call call,
                              std::vector<BodyAttribute> bodies, Location at);
  /// A node of ONNX's own with one result, of operands that all have to be there.
  Value call(std::string_view op, const std::vector<Value>& operands, std::vector<Attr> attributes, Location at);
  /// A node of a value and a number, which has the value's dtype and place; `first`: the number comes first.
  Value number_like(Value value, Number number, std::string_view op, Location at, bool first = false);
  /// The name after the scopes around it: "encoder.layers.0.name".
  std::string scoped(std::string_view name) const;
  /// The item belongs to an open body or the main graph.
  bool is_visible(std::uint32_t index) const;
  std::uint32_t open_body(std::string_view name);
  Value add_body_input(std::string_view name, FactId fact, std::string_view device);
  void close_body(const std::vector<Value>& outputs, Location at);
  std::int64_t version(std::string_view domain) const;
  std::string unused_name(std::string_view base);
  std::string canonical(std::string_view device, Location at) const;
  static void check_data(const Data& data, Location at);
  void check_operand(Value value, std::string_view what, Location at) const;
  [[noreturn]] static void misuse(Location at, const std::string& message);

  // ---- facts and findings
  FactStore& facts() { return *store; }
  void infer_step(std::uint32_t step);
  void guess_device(const Step& step, const OpSchema* schema, const ops::OpEntry* entry);
  /// The rules' findings about the steps from `first` on, said once.
  void report_from(std::uint32_t first);
  /// After the steps of one call: reports when something failed or may be wrong in a way that only rules see.
  void finish_call(std::uint32_t first, bool look_closely);

  struct Snapshot {
    Model model;
    std::vector<GraphId> graphs;  ///< by body
    std::unique_ptr<dataflow::Analysis> analysis;
    std::unique_ptr<tensorlint::placement::Placement> placement;
  };
  /// The analysis of the graph as it is; the facts of all values are its facts from now on.
  const Snapshot& snapshot();
  const tensorlint::placement::Placement& placement();
  const std::vector<std::string>& lines_of(std::string_view file) const;
  Finding to_public(const tensorlint::findings::Finding& found) const;
  Place place_of(const Location& at) const;

  Options options;
  std::deque<Item> items;
  std::deque<Step> steps;
  std::vector<Body> bodies;
  std::vector<std::uint32_t> constants;
  std::uint32_t current = 0;  ///< the innermost open body
  std::map<std::string, std::int64_t, std::less<>> imports;
  std::unordered_set<std::string> names;
  std::unordered_map<std::string, std::uint32_t> step_by_name;
  std::unordered_map<std::string, std::uint32_t> next_number;
  std::vector<std::string> scopes;  ///< names of the scopes that are open, outermost first
  std::string loss_metadata;        ///< of the steps that are added now
  bool uses_devices = false;
  bool pending_failure = false;
  int composite_depth = 0;  ///< inside a call that adds several steps
  std::size_t reports = 0;

  std::unique_ptr<FactStore> own_store;  ///< until the first snapshot
  FactStore* store = nullptr;
  std::unique_ptr<Snapshot> latest;
  std::uint64_t edits = 1, latest_edits = 0;

  std::vector<Finding> findings;
  std::set<std::string> said;
  mutable std::map<std::string, std::vector<std::string>, std::less<>> sources;
};

/// Steps that belong to one call: reported together, at its end, under its location.
class Composite {
 public:
  explicit Composite(State& state) : state_(state), first_(static_cast<std::uint32_t>(state.steps.size())) {
    ++state_.composite_depth;
  }
  Composite(const Composite&) = delete;
  Composite& operator=(const Composite&) = delete;
  ~Composite() {
    if (!finished_) close();
  }
  void finish(bool look_closely) {
    finished_ = true;
    close();
    state_.finish_call(first_, look_closely);
  }

 private:
  void close() {
    if (--state_.composite_depth == 0) state_.loss_metadata.clear();
  }

  State& state_;
  std::uint32_t first_;
  bool finished_ = false;
};

}  // namespace tensorlint::builder

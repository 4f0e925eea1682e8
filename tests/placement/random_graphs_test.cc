// Random graphs with devices: what placement says of each node against every execution, one by one. Both sides follow
// docs/design/placement.md; nothing is shared but the model's text.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/text/reader.h"
#include "passes/dataflow/analysis.h"
#include "passes/placement/placement.h"
#include "tests/sanitized.h"

namespace tensorlint::placement {
namespace {

/// As many as a test run has time for; `TENSORLINT_SOUNDNESS=full` asks for all.
std::size_t graph_count() {
  const char* const soundness = std::getenv("TENSORLINT_SOUNDNESS");
  return soundness != nullptr && std::string_view(soundness) == "full" ? 20'000 : 4'000 / stride(60);
}

constexpr std::size_t kMaxExecutions = 400;  // of one graph; graphs with more are not counted
constexpr int kMaxTrips = 8;                 // an open trip count is 0..8

const std::vector<std::string> kDevices{"cpu", "cuda:0", "cuda:1"};

struct Block;

struct Statement {
  enum class Kind {
    kPlain,
    kHost,
    kShape,
    kConstant,
    kTransfer,
    kFresh,
    kNot,
    kAnd,
    kIf,
    kLoop,
    kCall
  } kind = Kind::kPlain;
  std::string node, op;
  std::vector<std::string> in, out;
  std::string device;                          // tag, or where a Transfer goes
  std::vector<std::shared_ptr<Block>> bodies;  // then, else | body
  int function = -1;
  std::string trips;  // name of an input, or a number
  int carried = 0;
};

struct Block {
  std::vector<std::string> inputs;  // data
  std::string number, condition;    // of a loop's body
  std::vector<Statement> statements;
  std::vector<std::string> outputs;  // data; a body's condition is condition_out
  std::string condition_out;
};

struct Program {
  std::map<std::string, std::string> inputs;  // data inputs of the model: device, empty for untagged
  std::map<std::string, std::string> tags;    // node or body input: device
  std::vector<std::shared_ptr<Block>> functions;
  Block main;
};

// ---- making programs

class ProgramMaker {
 public:
  explicit ProgramMaker(std::uint32_t seed) : random_(seed) {}

  Program make() {
    for (int i = 0, n = number(2, 4); i < n; ++i) {
      const std::string name = fmt::format("x{}", i);
      program_.inputs[name] = chance(25) ? "" : pick(kDevices);
    }
    const int functions = chance(35) ? number(1, 2) : 0;
    for (int f = 0; f < functions; ++f) {
      auto block = std::make_shared<Block>();
      Scope scope;
      for (int i = 0, n = number(1, 2); i < n; ++i)
        scope.data.push_back(add_input(*block, fmt::format("p{}_{}", f, i)));
      fill(*block, scope, 1, number(1, 4), /*in_function=*/true);
      block->outputs.push_back(scope.data.back());
      program_.functions.push_back(std::move(block));
    }
    Scope scope;
    for (const auto& [name, device] : program_.inputs) scope.data.push_back(name);
    scope.conditions = {"f0", "f1"};
    fill(program_.main, scope, 0, number(2, 7), false);
    program_.main.outputs.push_back(scope.data.back());
    return std::move(program_);
  }

 private:
  struct Scope {
    std::vector<std::string> data, conditions;
  };

  int number(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random_); }
  bool chance(int percent) { return number(1, 100) <= percent; }
  template <typename T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(number(0, static_cast<int>(from.size()) - 1))];
  }
  /// Later values are used more often.
  std::string recent(const std::vector<std::string>& from) { return chance(50) ? from.back() : pick(from); }
  std::string fresh(std::string_view what) { return fmt::format("{}{}", what, ++count_); }

  std::string add_input(Block& block, const std::string& name) {
    block.inputs.push_back(name);
    return name;
  }

  Statement& add(Block& block, Statement::Kind kind, std::string op) {
    Statement& statement = block.statements.emplace_back();
    statement.kind = kind;
    statement.op = std::move(op);
    statement.node = fresh("n");
    return statement;
  }

  std::string condition(Block& block, Scope& scope, bool in_function) {
    if (!scope.conditions.empty() && (chance(60) || in_function)) return pick(scope.conditions);
    if (scope.conditions.size() >= 2 && chance(30)) {
      Statement& both = add(block, Statement::Kind::kAnd, "And");
      both.in = {pick(scope.conditions), pick(scope.conditions)};
      both.out = {fresh("c")};
      scope.conditions.push_back(both.out[0]);
    } else if (!scope.conditions.empty() && chance(40)) {
      Statement& inverse = add(block, Statement::Kind::kNot, "Not");
      inverse.in = {pick(scope.conditions)};
      inverse.out = {fresh("c")};
      scope.conditions.push_back(inverse.out[0]);
    } else {
      Statement& open = add(block, Statement::Kind::kFresh, "Cast");
      open.in = {"scalar"};
      open.out = {fresh("c")};
      scope.conditions.push_back(open.out[0]);
    }
    return scope.conditions.back();
  }

  /// A value that the block itself makes, as outputs of bodies have to be.
  std::string own(Block& block, const std::string& value) {
    for (const Statement& statement : block.statements)
      if (std::find(statement.out.begin(), statement.out.end(), value) != statement.out.end()) return value;
    Statement& copy = add(block, Statement::Kind::kPlain, "Identity");
    copy.in = {value};
    copy.out = {fresh("v")};
    return block.statements.back().out[0];
  }

  void fill(Block& block, Scope& scope, int depth, int length, bool in_function) {
    for (int i = 0; i < length; ++i) {
      const int kind = number(1, 100);
      if (kind <= 22) {
        Statement& one = add(block, Statement::Kind::kPlain, "Relu");
        one.in = {recent(scope.data)};
        tag_sometimes(one);
        finish(one, scope);
      } else if (kind <= 50) {
        Statement& two = add(block, Statement::Kind::kPlain, "Add");
        two.in = {recent(scope.data), pick(scope.data)};
        tag_sometimes(two);
        finish(two, scope);
      } else if (kind <= 66) {
        Statement& move = add(block, Statement::Kind::kTransfer, "Transfer");
        move.in = {recent(scope.data)};
        move.device = pick(kDevices);
        finish(move, scope);
      } else if (kind <= 70 && !in_function) {
        Statement& constant = add(block, Statement::Kind::kConstant, "Constant");
        if (chance(70)) program_.tags[constant.node] = constant.device = pick(kDevices);
        finish(constant, scope);
      } else if (kind <= 74) {
        const std::string value = recent(scope.data);
        Statement& shape = add(block, Statement::Kind::kShape, "Shape");
        shape.in = {value};
        shape.out = {fresh("s")};
        const std::string extents = shape.out[0];
        Statement& reshape = add(block, Statement::Kind::kHost, "Reshape");
        reshape.in = {recent(scope.data), extents};
        finish(reshape, scope);
      } else if (kind <= 84 && depth < 3) {
        branch(block, scope, depth, in_function);
      } else if (kind <= 94 && depth < 2) {
        loop(block, scope, depth, in_function);
      } else if (!program_.functions.empty() && !in_function) {
        Statement& call = add(block, Statement::Kind::kCall, "");
        call.function = number(0, static_cast<int>(program_.functions.size()) - 1);
        for (std::size_t p = 0; p < program_.functions[static_cast<std::size_t>(call.function)]->inputs.size(); ++p)
          call.in.push_back(recent(scope.data));
        finish(call, scope);
      }
    }
  }

  void tag_sometimes(Statement& statement) {
    if (chance(8)) program_.tags[statement.node] = statement.device = pick(kDevices);
  }
  void finish(Statement& statement, Scope& scope) {
    statement.out = {fresh("v")};
    scope.data.push_back(statement.out[0]);
  }

  void branch(Block& block, Scope& scope, int depth, bool in_function) {
    const std::string taken = condition(block, scope, false);
    Statement statement;
    statement.kind = Statement::Kind::kIf;
    statement.op = "If";
    statement.in = {taken};
    const int results = number(1, 2);
    for (int b = 0; b < 2; ++b) {
      auto body = std::make_shared<Block>();
      Scope inner = scope;
      fill(*body, inner, depth + 1, number(0, 2), in_function);
      for (int r = 0; r < results; ++r) body->outputs.push_back(own(*body, recent(inner.data)));
      statement.bodies.push_back(std::move(body));
    }
    statement.node = fresh("n");
    for (int r = 0; r < results; ++r) {
      statement.out.push_back(fresh("v"));
      scope.data.push_back(statement.out.back());
    }
    block.statements.push_back(std::move(statement));
  }

  void loop(Block& block, Scope& scope, int depth, bool in_function) {
    Statement statement;
    statement.kind = Statement::Kind::kLoop;
    statement.op = "Loop";
    const bool open = !in_function && chance(60);
    statement.trips = open ? (chance(70) ? "t0" : "t1") : std::to_string(chance(80) ? number(0, 5) : number(6, 40));
    // A function's body sees no values of the model: its loops begin unless they have a constant condition.
    const std::string start = in_function || chance(70) ? "" : condition(block, scope, false);
    statement.carried = number(1, 3);
    auto body = std::make_shared<Block>();
    Scope inner = scope;
    body->number = fresh("i");
    body->condition = fresh("go");
    for (int c = 0; c < statement.carried; ++c) {
      statement.in.push_back(recent(scope.data));
      inner.data.push_back(add_input(*body, fresh("state")));
      if (chance(6)) program_.tags[inner.data.back()] = pick(kDevices);
    }
    fill(*body, inner, depth + 1, number(1, 4), in_function);
    for (int c = 0; c < statement.carried; ++c)
      body->outputs.push_back(own(*body, chance(35) ? pick(body->inputs) : recent(inner.data)));
    const int how = number(1, 100);
    std::string next = how <= 75                                ? body->condition
                       : how <= 88 && !inner.conditions.empty() ? pick(inner.conditions)
                                                                : "";
    if (next.empty()) {
      Statement& fresh_condition = add(*body, Statement::Kind::kFresh, "Cast");
      fresh_condition.in = {"scalar"};
      fresh_condition.out = {fresh("c")};
      next = fresh_condition.out[0];
    }
    Statement& keep = add(*body, Statement::Kind::kPlain, "Identity");
    keep.in = {next};
    keep.out = {fresh("c")};
    body->condition_out = keep.out[0];
    statement.bodies = {std::move(body)};
    statement.node = fresh("n");
    statement.in.insert(statement.in.begin(), start);
    for (int c = 0; c < statement.carried; ++c) {
      statement.out.push_back(fresh("v"));
      scope.data.push_back(statement.out.back());
    }
    block.statements.push_back(std::move(statement));
  }

  std::mt19937 random_;
  Program program_;
  int count_ = 0;
};

// ---- as text

class Writer {
 public:
  explicit Writer(const Program& program) : program_(program) {}

  std::string write() {
    std::string inputs, functions;
    for (const auto& [name, device] : program_.inputs) {
      inputs += fmt::format("float[3, 3] {}, ", name);
      if (!device.empty()) keys_ += fmt::format("\"tensorlint.device:{}\": \"{}\", ", name, device);
    }
    for (const auto& [name, device] : program_.tags)
      keys_ += fmt::format("\"tensorlint.device:{}\": \"{}\", ", name, device);
    const std::string body = statements(program_.main);
    for (std::size_t f = 0; f < program_.functions.size(); ++f) {
      const Block& block = *program_.functions[f];
      functions += fmt::format(
          "\n<domain: \"local\", opset_import: [\"\": 21, \"tensorlint\": 1]>\nF{} ({}, scalar) => ({}) {{\n{}}}\n", f,
          fmt::join(block.inputs, ", "), block.outputs[0], statements(block));
    }
    std::string keys = keys_ + "\"end\": \"\"";
    return fmt::format(
        "<ir_version: 10, opset_import: [\"\": 21, \"tensorlint\": 1, \"local\": 1], metadata_props: [{}]>\n"
        "g ({}bool f0, bool f1, int64 t0, int64 t1, float scalar) => (float[3, 3] {}) {{\n{}}}\n{}",
        keys, inputs, program_.main.outputs[0], body, functions);
  }

 private:
  std::string statements(const Block& block) {
    std::string text;
    for (const Statement& statement : block.statements) text += line(statement);
    return text;
  }

  std::string line(const Statement& s) {
    const std::string head = fmt::format("[{}] {} = ", s.node, fmt::join(s.out, ", "));
    switch (s.kind) {
      case Statement::Kind::kConstant:
        return head + "Constant <value = float[3, 3] {1, 2, 3, 4, 5, 6, 7, 8, 9}> ()\n";
      case Statement::Kind::kTransfer:
        return fmt::format("{}tensorlint.Transfer <device = \"{}\"> ({})\n", head, s.device, s.in[0]);
      case Statement::Kind::kFresh:
        return fmt::format("{}Cast <to = 9> ({})\n", head, s.in[0]);
      case Statement::Kind::kCall:
        return fmt::format("{}local.F{} ({}, scalar)\n", head, s.function, fmt::join(s.in, ", "));
      case Statement::Kind::kIf: {
        std::string text = fmt::format("{}If ({}) <", head, s.in[0]);
        for (int b = 0; b < 2; ++b)
          text += fmt::format("{} = g () => ({}) {{\n{}}}", b == 0 ? "then_branch" : ", else_branch",
                              outputs(*s.bodies[static_cast<std::size_t>(b)]),
                              statements(*s.bodies[static_cast<std::size_t>(b)]));
        return text + ">\n";
      }
      case Statement::Kind::kLoop:
        return loop(s, head);
      default:
        return fmt::format("{}{} ({})\n", head, s.op, fmt::join(s.in, ", "));
    }
  }

  static std::string outputs(const Block& block) {
    std::string text;
    for (const std::string& output : block.outputs)
      text += fmt::format("{}float[3, 3] {}", text.empty() ? "" : ", ", output);
    return text;
  }

  std::string loop(const Statement& s, const std::string& head) {
    const Block& body = *s.bodies[0];
    std::string before, inputs;
    std::string trips = s.trips, start = s.in[0];
    if (trips[0] != 't') {
      const std::string name = fmt::format("{}_trips", s.node);
      before += fmt::format("{} = Constant <value = int64 {{{}}}> ()\n", name, trips);
      trips = name;
    }
    if (start.empty()) {
      start = fmt::format("{}_start", s.node);
      before += fmt::format("{} = Constant <value = bool {{1}}> ()\n", start);
    }
    for (const std::string& input : body.inputs) inputs += fmt::format(", float[3, 3] {}", input);
    std::vector<std::string> carried(s.in.begin() + 1, s.in.end());
    return fmt::format("{}{}Loop ({}, {}, {}) <body = g (int64 {}, bool {}{}) => (bool {}, {}) {{\n{}}}>\n", before,
                       head, trips, start, fmt::join(carried, ", "), body.number, body.condition, inputs,
                       body.condition_out, outputs(body), statements(body));
  }

  const Program& program_;
  std::string keys_;
};

// ---- every execution

struct Tensor3 {
  std::string device;
  bool tainted = false;
  bool truth = false;  // conditions
};

/// Answers for what is open, in the order in which it is asked for; run again with the next answers until all were
/// given.
class Answers {
 public:
  int ask(int choices) {
    if (at_ == given_.size()) given_.emplace_back(0, choices);
    return given_[at_++].first;
  }
  bool next() {
    at_ = 0;
    while (!given_.empty() && given_.back().first + 1 == given_.back().second) given_.pop_back();
    if (given_.empty()) return false;
    ++given_.back().first;
    return true;
  }

 private:
  std::vector<std::pair<int, int>> given_;
  std::size_t at_ = 0;
};

struct Seen {
  bool reached = false, failed = false;
};

class Execution {
 public:
  Execution(const Program& program, Answers& answers) : program_(program), answers_(answers) {}

  void run() {
    Scope scope;
    for (const auto& [name, device] : program_.inputs) scope[name] = {device.empty() ? "cpu" : device};
    scope["scalar"] = {"cpu"};
    run(program_.main, scope);
  }

  std::map<std::string, Seen> nodes;
  std::map<std::string, std::set<std::string>> devices;  // by value
  std::map<std::string, std::int64_t> first_iteration;   // by node: the earliest failing one
  std::map<std::string, bool> conditions;
  std::map<std::string, int> trips;
  bool fixed = false;  // answers come from conditions and trips; others are false and 0

 private:
  using Scope = std::map<std::string, Tensor3>;

  Tensor3 read(const Scope& scope, const std::string& name) {
    if (name == "f0" || name == "f1") {
      if (!conditions.contains(name)) conditions[name] = fixed ? false : answers_.ask(2) == 1;
      return {"cpu", false, conditions[name]};
    }
    return scope.at(name);
  }

  void visit(const std::string& node, bool tainted, bool failed) {
    Seen& seen = nodes[node];
    if (tainted) return;
    seen.reached = true;
    if (!failed) return;
    seen.failed = true;
    const std::int64_t latest = iterations_.empty() ? 0 : *std::max_element(iterations_.begin(), iterations_.end());
    const auto known = first_iteration.find(node);
    if (known == first_iteration.end() || latest < known->second) first_iteration[node] = latest;
  }

  void bind(Scope& scope, const std::string& name, const Tensor3& value) {
    scope[name] = value;
    devices[name].insert(value.device);
  }

  /// A tag on a body's input is a claim about what `owner` hands it.
  Tensor3 claimed(const std::string& owner, const std::string& input, Tensor3 value) {
    const auto tag = program_.tags.find(input);
    if (tag == program_.tags.end()) return value;
    const bool differs = tag->second != value.device;
    visit(owner, value.tainted, differs);
    return {tag->second, value.tainted || differs, value.truth};
  }

  void run(const Block& block, Scope& scope) {
    for (const Statement& statement : block.statements) run(statement, scope);
  }

  void run(const Statement& s, Scope& scope) {
    switch (s.kind) {
      case Statement::Kind::kPlain:
      case Statement::Kind::kNot:
      case Statement::Kind::kAnd:
        return plain(s, scope);
      case Statement::Kind::kHost: {  // the shape is on the cpu here
        const Tensor3 data = read(scope, s.in[0]);
        visit(s.node, data.tainted, false);
        return bind(scope, s.out[0], data);
      }
      case Statement::Kind::kShape:
        visit(s.node, read(scope, s.in[0]).tainted, false);
        return bind(scope, s.out[0], {"cpu"});
      case Statement::Kind::kConstant:
        visit(s.node, false, false);
        return bind(scope, s.out[0], {s.device.empty() ? "cpu" : s.device});
      case Statement::Kind::kTransfer:
        visit(s.node, read(scope, s.in[0]).tainted, false);
        return bind(scope, s.out[0], {s.device});
      case Statement::Kind::kFresh:
        visit(s.node, false, false);
        return bind(scope, s.out[0], {"cpu", false, fixed ? false : answers_.ask(2) == 1});
      case Statement::Kind::kIf: {
        visit(s.node, false, false);
        const Block& body = *s.bodies[read(scope, s.in[0]).truth ? 0 : 1];
        Scope inner = scope;
        run(body, inner);
        for (std::size_t r = 0; r < s.out.size(); ++r) bind(scope, s.out[r], read(inner, body.outputs[r]));
        return;
      }
      case Statement::Kind::kLoop:
        return loop(s, scope);
      case Statement::Kind::kCall: {
        visit(s.node, false, false);
        const Block& body = *program_.functions[static_cast<std::size_t>(s.function)];
        Scope inner;
        inner["scalar"] = {"cpu"};
        for (std::size_t i = 0; i < s.in.size(); ++i) bind(inner, body.inputs[i], read(scope, s.in[i]));
        run(body, inner);
        return bind(scope, s.out[0], read(inner, body.outputs[0]));
      }
    }
  }

  void plain(const Statement& s, Scope& scope) {
    std::vector<Tensor3> operands;
    for (const std::string& name : s.in) operands.push_back(read(scope, name));
    const std::string where = s.device.empty() ? operands[0].device : s.device;
    bool tainted = false, apart = false;
    for (const Tensor3& operand : operands) {
      tainted = tainted || operand.tainted;
      apart = apart || operand.device != where;
    }
    visit(s.node, tainted, apart);
    Tensor3 result{where, apart || (tainted && s.device.empty()), operands[0].truth};
    if (s.kind == Statement::Kind::kNot) result.truth = !operands[0].truth;
    if (s.kind == Statement::Kind::kAnd) result.truth = operands[0].truth && operands[1].truth;
    bind(scope, s.out[0], result);
  }

  void loop(const Statement& s, Scope& scope) {
    visit(s.node, false, false);
    const Block& body = *s.bodies[0];
    int count = 0;
    if (s.trips[0] == 't') {
      if (!trips.contains(s.trips)) trips[s.trips] = fixed ? 0 : answers_.ask(kMaxTrips + 1);
      count = trips[s.trips];
    } else {
      count = std::atoi(s.trips.c_str());
    }
    std::vector<Tensor3> state;
    for (std::size_t i = 1; i < s.in.size(); ++i) state.push_back(read(scope, s.in[i]));
    bool going = s.in[0].empty() || read(scope, s.in[0]).truth;
    for (int k = 1; k <= count && going; ++k) {
      iterations_.push_back(k);
      Scope inner = scope;
      inner[body.number] = {"cpu"};
      inner[body.condition] = {"cpu", false, true};
      for (std::size_t c = 0; c < state.size(); ++c)
        bind(inner, body.inputs[c], claimed(s.node, body.inputs[c], state[c]));
      run(body, inner);
      for (std::size_t c = 0; c < state.size(); ++c) state[c] = read(inner, body.outputs[c]);
      going = read(inner, body.condition_out).truth;
      iterations_.pop_back();
    }
    for (std::size_t c = 0; c < state.size(); ++c) bind(scope, s.out[c], state[c]);
  }

  const Program& program_;
  Answers& answers_;
  std::vector<std::int64_t> iterations_;
};

struct Truth {
  bool fails = false, passes = false;
  std::int64_t first_iteration = 0;
};

bool has_fresh(const Block& block) {
  return std::any_of(block.statements.begin(), block.statements.end(), [](const Statement& s) {
    return s.kind == Statement::Kind::kFresh ||
           std::any_of(s.bodies.begin(), s.bodies.end(), [](const auto& body) { return has_fresh(*body); });
  });
}

/// nullopt: too many executions.
std::optional<std::map<std::string, Truth>> truths(const Program& program,
                                                   std::map<std::string, std::set<std::string>>& devices) {
  std::map<std::string, Truth> nodes;
  Answers answers;
  std::size_t count = 0;
  do {
    if (++count > kMaxExecutions) return std::nullopt;
    Execution execution(program, answers);
    execution.run();
    for (const auto& [name, seen] : execution.nodes) {
      Truth& truth = nodes[name];
      if (seen.failed) {
        const std::int64_t first = execution.first_iteration[name];
        truth.first_iteration = truth.fails ? std::min(truth.first_iteration, first) : first;
        truth.fails = true;
      } else {
        truth.passes = truth.passes || seen.reached;
      }
    }
    for (const auto& [name, where] : execution.devices) devices[name].insert(where.begin(), where.end());
  } while (answers.next());
  return nodes;
}

TEST(RandomPlacements, AgreeWithEveryExecution) {
  const std::size_t graphs = graph_count();
  std::size_t compared = 0, failing = 0, may = 0, late = 0, witnesses = 0, weaker = 0;
  for (std::uint32_t seed = 1; compared < graphs && !HasFailure(); ++seed) {
    const Program program = ProgramMaker(seed).make();
    std::map<std::string, std::set<std::string>> devices;
    const auto expected = truths(program, devices);
    if (!expected) continue;
    ++compared;
    const bool fresh = has_fresh(program.main) || std::any_of(program.functions.begin(), program.functions.end(),
                                                              [](const auto& f) { return has_fresh(*f); });
    const std::string text = Writer(program).write();
    const Result<Model> model = read_onnx_text(text, "random.onnxtxt");
    ASSERT_TRUE(model) << model.error().message << "\n" << text;
    const dataflow::Analysis analysis = dataflow::analyse(*model, {});
    const Placement placement = place(analysis, {});
    ASSERT_TRUE(placement.problems().empty()) << placement.problems()[0].message << "\n" << text;

    std::map<std::string, const PlacementViolation*> found;
    for (const PlacementViolation& failure : placement.violations())
      found[std::string(model->label(failure.node))] = &failure;
    for (const auto& [node, truth] : *expected) {
      const auto at = found.find(node);
      const std::string wanted = !truth.fails ? "clean" : truth.passes ? "may" : "must";
      const std::string got = at == found.end()                                ? "clean"
                              : at->second->certainty == ops::Certainty::kMust ? "must"
                                                                               : "may";
      // Choices of iterations before the last four are forgotten: a failure that every execution has may then pass for
      // one that some have, never the other way round.
      if (wanted == "must" && got == "may" && fresh) {
        ++weaker;
        continue;
      }
      ASSERT_EQ(got, wanted) << "node " << node << " of seed " << seed << "\n" << text;
      if (at == found.end()) continue;
      ++failing;
      may += wanted == "may";
      late += truth.first_iteration > 1;
      const PlacementWitness& witness = at->second->witness;
      // A function that was visited with the same places before is not visited again: its first call is named.
      if (witness.calls.empty()) {
        ASSERT_EQ(witness.iteration, truth.first_iteration) << "node " << node << " of seed " << seed << "\n" << text;
      }
      ASSERT_NE(witness.device, witness.other);
      if (fresh) continue;
      Answers none;
      Execution execution(program, none);
      execution.fixed = true;
      execution.conditions = witness.conditions;
      for (const auto& [name, count] : witness.trip_counts) execution.trips[name] = static_cast<int>(count);
      execution.run();
      ASSERT_TRUE(execution.nodes[node].failed) << "the witness for node " << node << " of seed " << seed << "\n"
                                                << text;
      ++witnesses;
    }
    for (const auto& [node, failure] : found)
      ASSERT_TRUE(expected->contains(node)) << node << " of seed " << seed << " is never visited\n" << text;
    for (std::size_t v = 1; v < model->values.size(); ++v) {
      const auto where = devices.find(std::string(model->name_of(static_cast<ValueId>(v))));
      if (where == devices.end()) continue;
      const std::vector<std::string> known = placement.devices(static_cast<ValueId>(v));
      if (known.empty()) continue;
      for (const std::string& device : where->second)
        ASSERT_TRUE(std::find(known.begin(), known.end(), device) != known.end())
            << "value " << where->first << " on " << device << ", seed " << seed << "\n"
            << text;
    }
  }
  RecordProperty("graphs", static_cast<int>(compared));
  RecordProperty("failing_nodes", static_cast<int>(failing));
  RecordProperty("may", static_cast<int>(may));
  RecordProperty("later_iterations", static_cast<int>(late));
  RecordProperty("witnesses_run", static_cast<int>(witnesses));
  RecordProperty("must_said_as_may", static_cast<int>(weaker));
  EXPECT_LE(weaker * 200, failing);
  EXPECT_GT(failing, compared / 4);
  EXPECT_GT(may, compared / 50);
  EXPECT_GT(late, compared / 100);
  EXPECT_GT(witnesses, compared / 10);
}

}  // namespace
}  // namespace tensorlint::placement

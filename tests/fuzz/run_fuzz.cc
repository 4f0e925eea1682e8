#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/readers/onnx/reader.h"
#include "ir/text/reader.h"
#include "passes/dataflow/analysis.h"
#include "runtime/files/agreement.h"
#include "runtime/files/drawn_inputs.h"
#include "runtime/interpreter/fact_check.h"
#include "runtime/interpreter/interpreter.h"
#include "runtime/values/parallel.h"
#include "tests/fuzz/fuzz_target.h"

namespace tensorlint::fuzz {
namespace {

using runtime::HostValue;

// What runs within about a second under a sanitizer.
constexpr std::uint64_t kMemory = std::uint64_t{64} << 20, kInputs = std::uint64_t{64} << 10;
constexpr std::uint64_t kWork = std::uint64_t{1} << 26;
constexpr std::uint64_t kSeed = 1;

/// The values that a run gave, as text: two runs give the same.
std::string shown(const Result<std::vector<HostValue>>& outputs) {
  if (!outputs) return outputs.error().message;
  std::string text;
  for (const HostValue& output : *outputs)
    text += runtime::type_text(output) + " = " + runtime::elements_text(output, 256) + "\n";
  return text;
}

}  // namespace

void run(std::string_view bytes) {
  Result<Model> model = starts_as_binary(bytes) ? read_onnx_bytes(bytes, "no_such_folder/model.onnx")
                                                : read_onnx_text(bytes, "no_such_folder/m.onnxtxt");
  if (!model) return;
  runtime::set_thread_count(1);
  runtime::Memory memory(kMemory), memory_of_inputs(kInputs);
  std::vector<HostValue> inputs(model->graph(GraphId::kMain).inputs.size());
  if (const auto error = runtime::draw_inputs(*model, kSeed, memory_of_inputs, inputs)) {
    require(!error->message.empty(), "an error says something");
    return;
  }
  const dataflow::Analysis analysis = dataflow::analyse(*model, {});
  runtime::FactCheck facts(analysis);
  facts.begin(inputs);
  runtime::NodeObserver observer;
  // After a violation facts are guesses, and `run` refuses the model without --force.
  if (analysis.violations().empty())
    observer = [&](NodeId node, std::span<const HostValue> results) { facts.hold(node, results); };
  std::string first;
  {
    runtime::Interpreter interpreter(*model, memory, {.seed = kSeed, .work_limit = kWork, .observer = observer});
    first = shown(interpreter.run(inputs));
    require(!first.empty() || model->graph(GraphId::kMain).outputs.empty(), "a run says something");
    // The second run finds what the first one left behind.
    require(shown(interpreter.run(inputs)) == first, "a second run gives the same values");
  }
  for (const std::string& line : facts.outside()) std::fprintf(stderr, "%s\n", line.c_str());
  require(facts.outside().empty(), "every value lies inside its fact");
  require(memory.live() == 0, "all memory is given back");
}

}  // namespace tensorlint::fuzz

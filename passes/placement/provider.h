#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ir/graph/model.h"
#include "ir/types/dtype.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint::placement {

/// One kernel of an execution provider: an operator over a range of opsets and the dtypes that its type variables
/// allow.
struct ProviderKernel {
  std::int64_t since = 1, until = 0;  ///< until 0: also for the newest version
  std::vector<std::pair<std::string, DTypeSet>> types;
};

/// What an execution provider of a runtime can run. docs/providers.md has the form of the file.
struct ProviderTable {
  std::string name, device, source;  ///< "cuda", "cuda:0", "onnxruntime 1.23.0, 2025-07-22"
  std::string host = "cpu";          ///< the built-in provider that runs what stays on the cpu
  std::map<std::string, std::vector<ProviderKernel>, std::less<>>
      kernels;  ///< by domain.operator, "" and ai.onnx are one
};

/// Errors, with the line: unknown words, bad opsets, unknown dtypes, no name or device.
Result<ProviderTable> parse_provider(std::string_view text, const std::string& path);

/// A table that comes with this program; its text is known to be sound. Null: there is none of that name.
std::shared_ptr<const ProviderTable> built_in_provider(std::string_view name);
/// Their names, for a message.
std::string built_in_providers();

/// What a provider lacks to run a node.
struct MissingKernel {
  enum class Kind : std::uint8_t { kNothing, kOperator, kVersion, kDtypes };
  Kind kind = Kind::kNothing;
  std::int64_t newest = 0;  ///< kVersion: the newest version that it has
  DTypeSet dtypes{};        ///< kDtypes: of an operand or result

  bool any() const { return kind != Kind::kNothing; }
};
/// A dtype that is not known counts as one that the kernel has.
MissingKernel find_missing_kernel(const dataflow::Analysis& analysis, const Node& node, const ProviderTable& provider);

/// The same in words: "no kernel of cuda for int64"; empty where nothing is missing.
std::string to_text(const MissingKernel& missing, const Operator& op, const ProviderTable& provider);

/// Where one node runs, and why not on the first provider.
struct ProviderChoice {
  std::uint32_t provider = 0;     ///< index into the list; its size: on the cpu, which runs what no provider does
  bool shape_arithmetic = false;  ///< on the cpu since it works on shapes, which are there already
  MissingKernel missing;          ///< of the first provider
};
/// By node: a model may have millions of them.
using ProviderChoices = std::vector<std::pair<NodeId, ProviderChoice>>;

/// Chooses for each node the first provider that has a kernel for its operator, version and dtypes, as onnxruntime's
/// partitioner does; then nodes that only work on what is on the cpu already go back there (its GetCpuPreferredNodes).
/// A dtype that is not known counts as one that the kernel has. Control flow, calls, Transfer and Constant have no
/// entry, nor has what comes after the meter is spent.
ProviderChoices choose_providers(const dataflow::Analysis& analysis,
                                 std::span<const std::shared_ptr<const ProviderTable>> providers);

}  // namespace tensorlint::placement

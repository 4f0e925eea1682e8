#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/findings/finding.h"
#include "analyzer/findings/source_files.h"
#include "ir/graph/model.h"

namespace tensorlint::findings {

/// One frame of a Python stack trace as torch.onnx writes it.
struct StackFrame {
  std::string_view file;
  std::uint32_t line = 0;
  std::string_view source;  ///< the line of code, without its indentation; empty where the trace has none
};

/// The frames of `pkg.torch.onnx.stack_trace`, outermost first; at most 256.
std::vector<StackFrame> parse_stack_trace(std::string_view trace);

/// The frames of a doc string of PyTorch's TorchScript exporter (2.13, `train.py(41): forward`), outermost first,
/// without those that lead to the export; none where the text is something else.
std::vector<StackFrame> parse_exported_stack(std::string_view doc_string);

/// The innermost frame of the user's own code: not PyTorch's, not of an installed package. Where there is none, the
/// innermost frame of a file; null where there is none of those. Exporters run `<eval_with_key>`, which is no file, for
/// what a program does without gradients.
const StackFrame* users_frame(const std::vector<StackFrame>& frames);

/// False for files of the user's own program: neither PyTorch's nor of an installed package.
bool is_library_file(std::string_view file);

/// Where nodes and values of one model were written. Reads metadata and sources only when asked.
class LocationResolver {
 public:
  /// `source_root`: where programs are read besides the model's folder and the working folder; empty for none.
  explicit LocationResolver(const Model& model, const std::string& source_root = {})
      : model_(model), sources_(model.path, source_root, own_meter_) {}
  /// One of several for one input, whose meter counts what all of them look up.
  LocationResolver(const Model& model, const std::string& source_root, Meter& meter)
      : model_(model), sources_(model.path, source_root, meter) {}

  struct NodeLocation {
    SourceLocation place;
    std::string module;  ///< dotted path of the torch.nn.Module that the node belongs to; empty when not known
  };
  /// From the exporter's stack trace, else the node's line of a model in text; empty when there is neither.
  const NodeLocation& of(NodeId node);
  /// The same, and it is not kept: for walks over all nodes.
  NodeLocation find(NodeId node);
  /// NodeLocation::module alone, which is not kept either.
  std::string module(NodeId node) const;
  /// Of the node that makes the value, or the line of an initializer in text.
  SourceLocation of_value(ValueId value);
  /// Of a position in a model in text; empty in a binary one.
  SourceLocation in_text(const Position& position);
  /// The exporter's stack trace, outermost first; none where it wrote none.
  std::vector<StackFrame> frames(NodeId node);
  /// metadata_props of a node, empty without any.
  std::string_view metadata(NodeId node, std::string_view key);

 private:
  using Entries = std::vector<MetadataEntry>;
  Entries read_entries(NodeId node) const;
  std::vector<StackFrame> frames(NodeId node, const Entries& entries) const;

  const Model& model_;
  Meter own_meter_;
  std::map<NodeId, NodeLocation> places_;
  std::map<NodeId, Entries> metadata_;
  SourceFiles sources_;
};

}  // namespace tensorlint::findings

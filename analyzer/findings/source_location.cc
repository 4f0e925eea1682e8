#include "analyzer/findings/source_location.h"

#include <algorithm>
#include <charconv>
#include <span>

#include "analyzer/findings/kept.h"
#include "base/escape.h"
#include "base/lines.h"
#include "base/text.h"

namespace tensorlint::findings {
namespace {

constexpr std::size_t kMaxFrames = 256;
/// What a finding keeps of a line: twice what is shown of it. A whole model in text may be one line.
constexpr std::size_t kMaxKept = 2 * kShownLength;
/// And of a file's name: PATH_MAX of Linux, whose kernel opens no longer one.
constexpr std::size_t kMaxKeptFile = 4096;

/// `File "train.py", line 41, in forward`
std::optional<StackFrame> parse_frame(std::string_view line) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ";
  line = trimmed(line);
  if (!line.starts_with(kFile)) return std::nullopt;
  line.remove_prefix(kFile.size());
  const std::size_t end = line.find(kLine);
  if (end == std::string_view::npos || end == 0) return std::nullopt;
  StackFrame frame{.file = line.substr(0, end), .line = 0, .source = {}};
  const std::string_view number = line.substr(end + kLine.size());
  std::from_chars(number.data(), number.data() + number.size(), frame.line);
  return frame.line == 0 ? std::nullopt : std::optional(frame);
}

/// The last but one entry of `['', 'encoder', 'encoder.layers.0', 'linear_3']`: the module around the operation.
std::string innermost_module(std::string_view scopes) {
  std::string_view last, before;
  while (true) {
    const std::size_t open = scopes.find('\'');
    if (open == std::string_view::npos) break;
    const std::size_t close = scopes.find('\'', open + 1);
    if (close == std::string_view::npos) break;
    before = last;
    last = scopes.substr(open + 1, close - open - 1);
    scopes.remove_prefix(close + 1);
  }
  return kept(before);
}

constexpr std::string_view kScopes = "pkg.torch.onnx.name_scopes";

std::string_view value_of(std::span<const MetadataEntry> entries, std::string_view key) {
  const auto entry = std::ranges::find(entries, key, &MetadataEntry::key);
  return entry == entries.end() ? std::string_view() : entry->value;
}

/// By torch.fx, or Python's own code. A cell of a notebook, `<ipython-input-3>`, is the user's.
bool is_generated(std::string_view file) { return file.starts_with("<eval_with_key>") || file.starts_with("<frozen "); }

}  // namespace

bool is_library_file(std::string_view file) {
  // Asked for each finding; a name of slashes begins a word at each of them.
  constexpr std::size_t kMaxLooked = 1024;
  file = file.substr(0, kMaxLooked);
  for (const std::string_view part : {"site-packages/", "dist-packages/", "/lib/python3"})
    if (file.find(part) != std::string_view::npos) return true;
  constexpr std::string_view kTorch = "/torch/";
  for (std::size_t at = file.find(kTorch); at != std::string_view::npos; at = file.find(kTorch, at + 1))
    for (const std::string_view inner : {"nn/", "_", "onnx/", "utils/", "export/", "fx/"})
      if (file.substr(at + kTorch.size()).starts_with(inner)) return true;
  if (is_generated(file)) return true;
  for (const std::string_view start : {"<string>", "torch/", "torchvision/", "transformers/", "onnxscript/",
                                       "functorch/", "lightning/", "pytorch_lightning/"})
    if (file.starts_with(start)) return true;
  return false;
}

std::vector<StackFrame> parse_stack_trace(std::string_view trace) {
  std::vector<StackFrame> frames;
  bool expects_source = false;
  while (!trace.empty() && frames.size() < kMaxFrames) {
    const std::string_view line = take_line(trace);
    if (const auto frame = parse_frame(line)) {
      frames.push_back(*frame);
      expects_source = true;
    } else if (expects_source) {
      frames.back().source = trimmed(line);
      expects_source = false;
    }
  }
  return frames;
}

std::vector<StackFrame> parse_exported_stack(std::string_view doc_string) {
  std::vector<StackFrame> frames;
  while (!doc_string.empty() && frames.size() < kMaxFrames) {
    const std::string_view line = take_line(doc_string);
    if (trimmed(line).empty()) continue;
    const std::size_t close = line.rfind("): "), open = line.rfind('(', close);
    if (close == std::string_view::npos || open == std::string_view::npos || open == 0) return {};
    StackFrame frame{.file = line.substr(0, open), .line = 0, .source = {}};
    const char* const end = line.data() + close;
    const auto number = std::from_chars(line.data() + open + 1, end, frame.line);
    if (number.ptr != end || frame.line == 0) return {};
    // What the tracer was called by is not the model.
    if (frame.file.ends_with("torch/jit/_trace.py") || frame.file.find("torch/onnx/") != std::string_view::npos) break;
    frames.push_back(frame);
  }
  std::ranges::reverse(frames);
  return frames;
}

const StackFrame* users_frame(const std::vector<StackFrame>& frames) {
  const auto own = std::find_if(frames.rbegin(), frames.rend(),
                                [](const StackFrame& frame) { return !is_library_file(frame.file); });
  if (own != frames.rend()) return &*own;
  const auto library =
      std::find_if(frames.rbegin(), frames.rend(), [](const StackFrame& frame) { return !is_generated(frame.file); });
  return library == frames.rend() ? nullptr : &*library;
}

LocationResolver::Entries LocationResolver::read_entries(NodeId node) const {
  if (node == NodeId::kNone || model_.provenance == nullptr) return {};
  // Exporters write a dozen; each question goes through them.
  constexpr std::size_t kMostEntries = 64;
  Entries entries = model_.provenance->node_metadata(model_.node(node));
  if (entries.size() > kMostEntries) {
    entries.resize(kMostEntries);
    entries.shrink_to_fit();
  }
  return entries;
}

std::vector<StackFrame> LocationResolver::frames(NodeId node, const Entries& entries) const {
  std::vector<StackFrame> frames = parse_stack_trace(value_of(entries, "pkg.torch.onnx.stack_trace"));
  if (frames.empty() && node != NodeId::kNone && model_.provenance != nullptr)
    frames = parse_exported_stack(model_.provenance->node_doc_string(model_.node(node)));
  return frames;
}

std::vector<StackFrame> LocationResolver::frames(NodeId node) { return frames(node, read_entries(node)); }

std::string_view LocationResolver::metadata(NodeId node, std::string_view key) {
  if (node == NodeId::kNone) return {};
  const auto [it, is_new] = metadata_.try_emplace(node);
  if (is_new) it->second = read_entries(node);
  return value_of(it->second, key);
}

std::string LocationResolver::module(NodeId node) const {
  return innermost_module(value_of(read_entries(node), kScopes));
}

const LocationResolver::NodeLocation& LocationResolver::of(NodeId node) {
  const auto [it, is_new] = places_.try_emplace(node);
  if (is_new && node != NodeId::kNone) it->second = find(node);
  return it->second;
}

LocationResolver::NodeLocation LocationResolver::find(NodeId node) {
  NodeLocation found;
  const Entries entries = read_entries(node);
  found.module = innermost_module(value_of(entries, kScopes));
  const std::vector<StackFrame> frames = this->frames(node, entries);
  if (const StackFrame* frame = users_frame(frames)) {
    found.place = {.file = kept(frame->file, kMaxKeptFile),
                   .line = frame->line,
                   .column = 0,
                   .source = kept(frame->source, kMaxKept)};
    // The trace keeps the code as it was at export; a file that has changed since would show another line.
    const std::string_view now = sources_.program_line(frame->file, frame->line);
    if (frame->source.empty() || trimmed(now) == frame->source) {
      found.place.source = kept(now, kMaxKept);
      const std::size_t indent = now.find_first_not_of(" \t");
      if (indent != std::string_view::npos) found.place.column = static_cast<std::uint32_t>(indent + 1);
    }
  } else {
    found.place = in_text(model_.node(node).position);
  }
  return found;
}

SourceLocation LocationResolver::of_value(ValueId value) {
  if (value == ValueId::kAbsent) return {};
  const Value& known = model_.value(value);
  if (known.producer != NodeId::kNone) return of(known.producer).place;
  return known.initializer != nullptr ? in_text(known.initializer->position) : SourceLocation{};
}

SourceLocation LocationResolver::in_text(const Position& position) {
  if (position.line == 0) return {};
  return {.file = model_.path,
          .line = position.line,
          .column = position.column,
          .source = kept(sources_.model_line(position.line), kMaxKept)};
}

}  // namespace tensorlint::findings

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_bytes.h"
#include "ir/constants/weight_parts.h"
#include "ir/graph/model_builder.h"
#include "ir/readers/onnx/memory_budget.h"
#include "ir/readers/onnx/provenance.h"
#include "ir/readers/onnx/reader.h"
#include "ir/readers/onnx/wire.h"

namespace tensorlint::onnx {

inline constexpr auto kLeap = static_cast<std::ptrdiff_t>(kWeights);
inline constexpr std::size_t kKeptContents = std::size_t{8} << 10;  // 1,024 elements of 8 bytes are looked at
/// Rare enough to be cheap, and little memory beside what SECURITY.md allows.
inline constexpr std::ptrdiff_t kReleasedAtOnce = std::ptrdiff_t{2} << 20;

inline constexpr std::size_t kWorthAsking = std::size_t{8} << 10;  // two pages: less is read when it is touched

/// Reads one model. Private to this folder: users call read_onnx_file.
class Reader {
 public:
  /// `mapping`: what `file` is the bytes of, null for bytes in memory. `elsewhere`: see read_onnx_bytes; `weights`: the
  /// file that weights lie in.
  Reader(std::string_view file, std::string path, const FileBytes* mapping,
         std::span<const ElementsElsewhere> elsewhere, const FileBytes* weights);

  /// Throws WireFault.
  Model read();

 private:
  /// A graph or function whose bytes are still to be walked.
  struct Pending {
    std::string_view bytes;
    GraphId id;
    int depth;
    bool in_function;  ///< references to a function's attributes mean something here
    bool is_function;
  };

  /// Where an attribute stands: decides what its subgraphs belong to.
  struct Holder {
    GraphId graph;
    NodeId node;  ///< kNone: a function's default
    int depth;
    bool in_function;
  };

  Model& model() { return builder_.model(); }
  Cursor cursor(std::string_view message) const { return {message, start_}; }
  std::uint64_t offset_of(const char* place) const { return static_cast<std::uint64_t>(place - start_); }
  Position at(std::string_view message) const { return {.offset = offset_of(message.data())}; }
  static std::uint32_t length_of(std::string_view message) {
    return static_cast<std::uint32_t>(message.size());
  }  // Cursor: below 2 GiB

  void check_budget(const char* place) {
    if (budget_.is_exceeded(kNameCost * model().names.size() + builder_.memory_made())) [[unlikely]]
      fail_budget(place);
  }
  [[noreturn]] void fail_budget(const char* place) const {
    throw WireFault{"too many tiny messages: the model would take more than 36 bytes of memory for each of its bytes",
                    offset_of(place)};
  }

  /// A walk begins, over fields, nodes or initializers. Bodies and functions are thousands of short ones, anywhere.
  void begin_walk(const char* first) {
    if (first >= passed_) return passed(first);
    release_passed();
    if (passed_ - first >= kLeap) landing_ = first;
    released_ = passed_ = first;
  }
  /// It has come there: lets go of the pages that it has passed, if it leapt over any. What is dense is read again.
  void passed(const char* place) {
    if (place - passed_ >= kLeap) land(place);
    passed_ = place;
    if (place - released_ >= kReleasedAtOnce) release_passed();
  }
  /// Weights, or what nothing is read from, lie before this place.
  void land(const char* place) {
    landing_ = place;
    has_leapt_ = true;
  }
  void weights_end(const char* place) {
    land(place);
    passed(place);
  }
  void release_passed();
  void release(std::string_view part) const {
    if (mapping_ != nullptr) mapping_->release(part);
  }

  /// What lies inside weights or right after some. When it is looked at again later, systems map whole blocks of the
  /// file around it, up to 2 MiB: names and small contents are kept apart instead.
  bool is_amid_weights(std::string_view message) const {
    return mapping_ != nullptr && (message.size() >= kWeights || is_after_leap(message));
  }
  bool is_after_leap(std::string_view text) const {
    return static_cast<std::size_t>(text.data() - landing_) < kWeights;
  }
  std::string_view apart(std::string_view part);
  bool is_kept_apart(std::string_view text) const {
    return mapping_ != nullptr && text.size() <= kKeptContents && is_after_leap(text);
  }
  std::string_view lasting(std::string_view text) { return is_kept_apart(text) ? apart(text) : text; }
  NameId name(std::string_view text);
  NameId name(std::string_view text, std::uint32_t hash, bool keeps_apart) {
    if (keeps_apart) [[unlikely]]
      return name_apart(text, hash);
    return builder_.name(text, hash);
  }
  NameId name_apart(std::string_view text, std::uint32_t hash);
  /// Interns what was passed to intern_later, in that order.
  void intern_names();
  void intern_later(std::string_view name, std::vector<NameId>& list) {
    if (later_count_ == later_names_.size()) intern_names();
    later_names_[later_count_++] = {name, model().names.ask_for(name), &list};
  }

  /// Of a list or a tensor, what is looked at whole and not passed over.
  void will_read(std::string_view part) const {
    if (mapping_ != nullptr && part.size() >= kWorthAsking) mapping_->will_need(part);
  }

  void fault(StructureFault fault) { builder_.fault(std::move(fault)); }

  // ---- model, graphs, functions, nodes: model_reader.cc

  void read_model_fields();
  void opset_import(std::string_view message, GraphId graph, std::vector<OpsetImport>& imports);
  void walk_graphs();
  void graph_fields(const Pending& pending);
  void function_fields(const Pending& pending);
  void initializers(const Pending& pending, const char* first, const char* last);
  void nodes(const Pending& pending, std::uint32_t field, const char* first, const char* last);
  void node(std::string_view message, const Pending& pending);
  GraphId queue_subgraph(std::string_view message, const Holder& holder);
  void note_metadata(GraphId graph, NameId name, std::uint32_t field, std::string_view message);
  void finish_metadata(Model& model);
  void skip_metadata(Cursor& cursor, std::string_view name) {
    metadata_keys_.note(metadata_entry(cursor.inside(cursor.view(name))).key);
  }

  // ---- attributes.cc

  void attribute(std::string_view message, const Holder& holder, std::vector<Attribute>& out);
  void check_kind(Attribute& self, std::int64_t kind_code, unsigned present, const Holder& holder,
                  std::string_view message);

  // ---- types.cc

  struct ValueInfo {
    NameId name = NameId::kEmpty;
    const TypeDecl* type = nullptr;
    bool has_metadata = false;
  };
  ValueInfo value_info(std::string_view message, GraphId graph);
  const TypeDecl* type(std::string_view message, GraphId graph, NodeId node);
  std::span<const DimDecl> shape(std::string_view message);

  // ---- tensors.cc

  /// What a tensor's typed fields give besides Tensor::typed.
  struct TypedData {
    std::vector<char> pieces;        ///< data given in several pieces, joined as if packed
    std::uint32_t second_field = 0;  ///< a field of another type, which no tensor may have too
  };

  const Tensor* tensor(std::string_view message, GraphId graph, NodeId node, bool* has_metadata = nullptr);
  const SparseTensor* sparse_tensor(std::string_view message, GraphId graph, NodeId node, bool* has_metadata = nullptr);
  void typed_data(Cursor& fields, Tensor& self, TypedData& data);
  /// Numbers of a tensor that stand in one piece: where they are. Weights are listed.
  std::string_view numbers(std::string_view piece);
  void report_tensor_fault(const Tensor& self, const TypedData& data, bool is_segment, GraphId graph, NodeId node);

  std::string_view file_;
  const char* start_;
  const char *released_, *passed_;  ///< of a walk: where pages were let go of last, where it is
  bool has_leapt_ = false;          ///< since then
  const char* landing_;             ///< where a walk went on after weights, or began far from the one before
  const FileBytes *mapping_, *weights_;
  std::span<const ElementsElsewhere> elsewhere_;
  ReadAhead ahead_;
  ModelBuilder builder_;
  std::deque<Pending> pending_;
  MemoryBudget budget_;

  struct NamedMetadata {
    GraphId graph;
    NameId name;
    std::uint32_t field;
    std::string_view message;
  };
  std::vector<NamedMetadata> value_metadata_;
  MetadataKeys metadata_keys_;

  struct LaterName {
    std::string_view text;
    std::uint32_t hash = 0;
    std::vector<NameId>* list = nullptr;
  };
  std::array<LaterName, 8> later_names_;
  std::size_t later_count_ = 0;

  // Scratch, reused from node to node: no allocation of their own for most nodes.
  std::vector<NameId> operands_, results_;
  std::vector<Attribute> attributes_;
  std::vector<std::int64_t> ints_, tensor_dims_;
  std::vector<float> floats_;
  std::vector<std::string_view> strings_, tensor_strings_;
  std::vector<DimDecl> dims_;
};

}  // namespace tensorlint::onnx

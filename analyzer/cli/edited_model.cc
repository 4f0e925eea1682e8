#include "analyzer/cli/edited_model.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "analyzer/cli/inputs.h"
#include "ir/constants/weight_parts.h"
#include "ir/readers/onnx/reader.h"
#include "ir/text/reader.h"
#include "ir/writers/text/writer.h"

namespace tensorlint::cli {
namespace {

/// Bytes in pages that take memory only where they are written.
class SparseBytes {
 public:
  explicit SparseBytes(std::size_t size) : size_(size) {
    void* const pages =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages != MAP_FAILED) data_ = static_cast<char*>(pages);
  }
  SparseBytes(const SparseBytes&) = delete;
  SparseBytes& operator=(const SparseBytes&) = delete;
  ~SparseBytes() {
    if (data_ != nullptr) ::munmap(data_, size_);
  }
  bool ok() const { return data_ != nullptr; }
  char* data() { return data_; }
  std::string_view view() const { return {data_, size_}; }

 private:
  char* data_ = nullptr;
  std::size_t size_;
};

/// Copies a part without those of the ranges, which are sorted and do not overlap, that lie in it; these are said to be
/// elsewhere.
void copy_between(std::string_view part, std::span<const std::string_view> ranges, char* to,
                  std::vector<ElementsElsewhere>& elsewhere, WeightParts& copied) {
  const std::less<> before;
  const char *at = part.data(), *const end = at + part.size();
  const auto copy_to = [&](const char* stop) {
    constexpr std::ptrdiff_t kAtOnce = std::ptrdiff_t{1} << 20;
    while (at < stop) {
      const char* const next = at + std::min(kAtOnce, stop - at);
      std::copy(at, next, to + (at - part.data()));
      copied.read_until(next);
      at = next;
    }
  };
  auto range = std::ranges::partition_point(ranges, [&](std::string_view raw) { return before(raw.data(), at); });
  for (; range != ranges.end() && !before(end, range->data() + range->size()); ++range) {
    copy_to(range->data());
    elsewhere.push_back({to + (range->data() - part.data()), *range});
    at = range->data() + range->size();
  }
  copy_to(end);
}

/// The bodies around the innermost one, and it.
std::size_t depth_of(const Model& model) {
  std::vector<std::size_t> depths(model.graphs.size());
  for (const GraphId id : model.graphs.ids()) {
    const Graph& graph = model.graph(id);
    if (graph.kind == GraphKind::kSubgraph)
      depths[static_cast<std::size_t>(id)] = 1 + depths[static_cast<std::size_t>(graph.parent)];
  }
  return depths.empty() ? 0 : *std::ranges::max_element(depths);
}

/// Once for each round of edits: work for the input, like what is found out about the result. A text of bodies within
/// bodies is gone through, and names are looked for, at each depth.
void charge_reading(const Model& model, const pipeline::Options& options) {
  constexpr std::uint64_t kStepsPerByte = 16;
  if (options.analysis.meter != nullptr)
    options.analysis.meter->charge((kStepsPerByte + depth_of(model)) * model.input_bytes);
}

Result<EditedModel> read_again(Result<Model> model, EditedBytes edited, std::string_view bytes,
                               const pipeline::Options& options) {
  if (!model) return Error{fmt::format("the edited model cannot be read: {}", model.error().message), {}};
  charge_reading(*model, options);
  return EditedModel{
      .edited = std::move(edited), .bytes = bytes, .pipeline = pipeline::Pipeline(std::move(*model), options)};
}

Result<EditedModel> read_text(EditedBytes edited, const std::string& path, const pipeline::Options& options) {
  const auto bytes = std::make_shared<const std::string>(edited.joined());
  Result<Model> model = read_onnx_text(*bytes, path);
  if (model) model->storage.push_back(bytes);
  return read_again(std::move(model), std::move(edited), *bytes, options);
}

/// `weights`: of the model that was edited.
Result<EditedModel> read_binary(EditedBytes edited, std::vector<std::string_view> weights, const std::string& path,
                                const pipeline::Options& options, const FileBytes* mapping) {
  std::ranges::sort(weights, std::less<>(), [](std::string_view elements) { return elements.data(); });
  const auto bytes = std::make_shared<SparseBytes>(static_cast<std::size_t>(edited.size()));
  if (!bytes->ok()) return Error{"not enough memory for the edited model", {}};
  std::vector<ElementsElsewhere> elsewhere;
  WeightParts copied(mapping != nullptr ? mapping->bytes() : std::string_view(), mapping);
  std::size_t at = 0;
  for (const std::string_view part : edited.parts()) {
    copy_between(part, weights, bytes->data() + at, elsewhere, copied);
    at += part.size();
  }
  return read_again(read_onnx_bytes(bytes->view(), path, bytes, elsewhere, mapping), std::move(edited), bytes->view(),
                    options);
}

}  // namespace

Result<EditedModel> edit_model(std::string_view file, const Model& model, std::span<const GraphEdit> edits,
                               const pipeline::Options& options, const FileBytes* mapping, const EditedBytes* earlier) {
  const bool is_text = is_text_model(model.path, file);
  Result<EditedBytes> edited = is_text ? edit_onnx_text(file, model, edits) : edit_onnx(file, model, edits, mapping);
  if (!edited) return edited.error();
  if (earlier != nullptr) edited->refer_to(*earlier, file);
  return is_text ? read_text(std::move(*edited), model.path, options)
                 : read_binary(std::move(*edited), model.weights, model.path, options, mapping);
}

}  // namespace tensorlint::cli

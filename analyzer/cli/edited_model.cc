#include "analyzer/cli/edited_model.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "analyzer/cli/inputs.h"
#include "ir/readers/onnx/reader.h"
#include "ir/text/reader.h"
#include "ir/writers/text/writer.h"

namespace tensorlint::cli {
namespace {

constexpr std::size_t kLargeWeights = std::size_t{1} << 20;  // inference reads constants of up to 512 KiB

/// raw_data of large tensors, in the order of their addresses.
std::vector<std::string_view> large_weights(const Model& model) {
  std::vector<std::string_view> weights;
  const auto add = [&](const Tensor* tensor) {
    if (tensor != nullptr && tensor->raw.size() >= kLargeWeights) weights.push_back(tensor->raw);
  };
  for (const Value& value : model.values) add(value.initializer);
  for (const Attribute& attribute : model.attribute_list) {
    add(attribute.tensor);
    for (const Tensor* const tensor : attribute.tensors) add(tensor);
  }
  std::ranges::sort(weights, std::less<>(), [](std::string_view raw) { return raw.data(); });
  return weights;
}

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

/// Copies a part without what of it is in one of the ranges, which are sorted and do not overlap.
void copy_between(std::string_view part, std::span<const std::string_view> ranges, char* to) {
  const char *at = part.data(), *const end = at + part.size();
  auto range = std::ranges::partition_point(
      ranges, [&](std::string_view raw) { return !std::less<>()(at, raw.data() + raw.size()); });
  while (at != end) {
    const char* stop = end;
    if (range != ranges.end() && std::less<>()(range->data(), end)) stop = std::max(at, range->data(), std::less<>());
    std::copy(at, stop, to + (at - part.data()));
    at = stop;
    if (at == end) break;
    at = std::min(range->data() + range->size(), end, std::less<>());
    ++range;
  }
}

Error unreadable(const Error& error) { return {fmt::format("the edited model cannot be read: {}", error.message), {}}; }

/// Once for each round of edits: work for the input, like what is found out about the result.
void charge_reading(const Model& model, const pipeline::Options& options) {
  constexpr std::uint64_t kStepsPerByte = 4;
  if (options.analysis.meter != nullptr) options.analysis.meter->charge(kStepsPerByte * model.input_bytes);
}

}  // namespace

Result<EditedModel> edit_model(std::string_view file, const Model& model, std::span<const GraphEdit> edits,
                               const pipeline::Options& options) {
  const bool is_text = is_text_model(model.path, file);
  Result<EditedBytes> edited = is_text ? edit_onnx_text(file, model, edits) : edit_onnx(file, model, edits);
  if (!edited) return edited.error();
  auto joined = std::make_shared<const std::string>(edited->joined());
  Result<Model> again = is_text ? read_onnx_text(*joined, model.path) : read_onnx_bytes(*joined, model.path, joined);
  if (!again) return unreadable(again.error());
  charge_reading(*again, options);
  return EditedModel{.edited = std::move(*edited),
                     .bytes = std::move(joined),
                     .pipeline = pipeline::Pipeline(std::move(*again), options)};
}

Result<EditedModel> check_edits(std::string_view file, const Model& model, std::span<const GraphEdit> edits,
                                const pipeline::Options& options) {
  Result<EditedBytes> edited = edit_onnx(file, model, edits);
  if (!edited) return edited.error();
  const auto bytes = std::make_shared<SparseBytes>(static_cast<std::size_t>(edited->size()));
  if (!bytes->ok()) return Error{"not enough memory for the edited model", {}};
  const std::vector<std::string_view> weights = large_weights(model);
  std::size_t at = 0;
  for (const std::string_view part : edited->parts()) {
    copy_between(part, weights, bytes->data() + at);
    at += part.size();
  }
  Result<Model> again = read_onnx_bytes(bytes->view(), model.path, bytes);
  if (!again) return unreadable(again.error());
  charge_reading(*again, options);
  return EditedModel{
      .edited = std::move(*edited), .bytes = nullptr, .pipeline = pipeline::Pipeline(std::move(*again), options)};
}

}  // namespace tensorlint::cli

#include "ir/text/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/file_bytes.h"
#include "base/foreign_format.h"
#include "base/text.h"
#include "ir/text/model_reader.h"

namespace tensorlint {
namespace {

constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30;

/// One that may be two bytes, and the line that it is about.
constexpr std::uint64_t kCommentCost = sizeof(Comment) + sizeof(std::uint32_t);

template <typename Use>
void for_each_comment(std::string_view text, const Use& use) {
  std::uint32_t line = 1;
  bool in_string = false, alone = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') {
      ++line;
      alone = true;
      continue;
    }
    if (c == '"') {
      in_string = !in_string;
    } else if (in_string && c == '\\') {
      if (++i < text.size() && text[i] == '\n') ++line;
    } else if (!in_string && c == '#') {
      const std::size_t end = std::min(text.find('\n', i), text.size());
      use(Comment{line, trimmed(text.substr(i + 1, end - i - 1)), alone});
      i = end - 1;
    }
    if (c != ' ' && c != '\t') alone = false;
  }
}

}  // namespace

Result<Model> read_onnx_text(std::string_view text, std::string path) {
  if (text.size() > kMaxTextBytes)
    return Error{fmt::format("a text of {} bytes, more than the limit of 1 GiB", text.size()), {}};
  auto kept = std::make_shared<const std::string>(text);
  text::Reader reader(*kept);
  if (!reader.read(std::move(path))) {
    const bool begins_as_model = text.starts_with('<') || text.starts_with('#');
    if (const std::string format = begins_as_model ? std::string() : foreign_format(text); !format.empty())
      return Error{fmt::format("not an ONNX model: the file is {}", format), {}};
    return reader.error();
  }
  std::size_t comments = 0;
  for_each_comment(*kept, [&](const Comment&) { ++comments; });
  std::optional<Model> finished = reader.finish(comments * kCommentCost);
  if (!finished) return reader.error();
  Model model = *std::move(finished);
  model.input_bytes = text.size();
  model.comments.reserve(comments);
  for_each_comment(*kept, [&](const Comment& comment) { model.comments.push_back(comment); });
  model.storage.push_back(std::move(kept));
  return model;
}

Result<Model> read_onnx_text_file(const std::string& path) {
  Result<std::shared_ptr<const FileBytes>> file = FileBytes::open(path, kMaxTextBytes);
  if (!file) return file.error();
  return read_onnx_text((*file)->bytes(), path);
}

}  // namespace tensorlint

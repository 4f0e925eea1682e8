#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_bytes.h"
#include "base/result.h"
#include "ir/graph/edit.h"

namespace tensorlint {

/// The bytes of an edited file, in order: views into the old file and pieces of our own. Valid as long as the old
/// file's bytes.
class EditedBytes {
 public:
  void keep(std::string_view old_bytes);
  void add(std::string new_bytes);
  void append(EditedBytes other);
  /// For parts of bytes that stand for `old`, as if they were in one piece at `place`: the parts of `old` that they
  /// are.
  void refer_to(const EditedBytes& old, std::string_view place);
  std::span<const std::string_view> parts() const { return parts_; }
  std::uint64_t size() const { return size_; }
  std::string joined() const;  ///< for tests and small models

 private:
  std::vector<std::string_view> parts_;
  std::vector<std::shared_ptr<const std::string>> owned_;
  std::uint64_t size_ = 0;
};

/// Splices edits into a binary ONNX file. What an edit does not touch stays byte for byte, unknown fields included; of
/// the messages around an edit only the length prefixes change. `model` has been read from `file`. `mapping`: as of
/// WeightParts. Errors: an edit of a node or graph that is not in the file (a body of a library function, say), or on a
/// malformed file.
Result<EditedBytes> edit_onnx(std::string_view file, const Model& model, std::span<const GraphEdit> edits,
                              const FileBytes* mapping = nullptr);

}  // namespace tensorlint

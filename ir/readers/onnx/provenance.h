#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/file_bytes.h"
#include "ir/graph/model.h"
#include "ir/readers/onnx/wire.h"

namespace tensorlint::onnx {

/// A piece of the file that holds metadata_props of a value: found again only when someone asks.
struct MetadataSpan {
  std::uint32_t value = 0;
  std::uint32_t field = 0;  ///< number of metadata_props in that message
  std::string_view message;
};

/// A StringStringEntryProto.
MetadataEntry metadata_entry(Cursor cursor);

/// The keys of all metadata_props of nodes, values and tensors. Exporters write the same few at every node.
class MetadataKeys {
 public:
  void note(std::string_view key) {
    if (are_more_ || contains(key)) return;
    if (count_ == keys_.size()) {
      are_more_ = true;
    } else {
      keys_[count_++] = key;
    }
  }
  bool contains(std::string_view key) const {
    return std::find(keys_.begin(), keys_.begin() + count_, key) != keys_.begin() + count_;
  }
  bool are_more() const { return are_more_; }

 private:
  std::array<std::string_view, 16> keys_{};
  std::uint8_t count_ = 0;
  bool are_more_ = false;
};

DeviceConfiguration device_configuration(Cursor fields);

/// Answers from the file, which has been walked: nothing throws. `spans`: sorted by value, then by place in the file.
/// `mapping`: of the file; null where it was read as a whole.
std::unique_ptr<Provenance> make_file_provenance(std::string_view file, std::vector<MetadataSpan> spans,
                                                 const MetadataKeys& keys, const FileBytes* mapping);

}  // namespace tensorlint::onnx

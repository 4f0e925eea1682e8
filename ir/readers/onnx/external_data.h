#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "ir/graph/model.h"

namespace tensorlint {

/// An open file with the data of external tensors.
class ExternalFile {
 public:
  ExternalFile(Descriptor descriptor, std::uint64_t size) : descriptor_(std::move(descriptor)), size_(size) {}
  int descriptor() const { return descriptor_.number(); }
  std::uint64_t size() const { return size_; }  ///< bytes, when it was opened

 private:
  Descriptor descriptor_;
  std::uint64_t size_;
};

/// The folder of a model, where its external data is.
class ExternalFolder {
 public:
  explicit ExternalFolder(const std::string& model_path);

  /// Opens `location` of an external tensor, a path relative to the folder, without ever leaving that: component by
  /// component, never blocking, regular files only. A symbolic link is followed where it stays inside the folder, or
  /// where it is one of a model hub's cache: `../../blobs/FILE` (one `..` more for each folder below the snapshot's)
  /// beside a folder `snapshots`. Errors: the location is empty, absolute, holds a zero byte or `..`; leaves the
  /// folder; is no regular file or not readable.
  Result<ExternalFile> open(std::string_view location);
  /// Bytes of a file, or the error of `open`: looked up once, however often a model is checked.
  const Result<std::uint64_t>& size_of(std::string_view location);

 private:
  const std::string& real_path();

  std::string path_;
  Descriptor folder_;
  std::size_t components_ = 0;            ///< of all locations and links so far
  std::optional<std::string> real_path_;  ///< with a slash at its end; looked for when a link asks for it
  std::map<std::string, Result<std::uint64_t>, std::less<>> sizes_;
};

/// Opens one file of the model's folder.
Result<ExternalFile> open_external_file(const std::string& model_path, std::string_view location);

/// Where in its file the data of a tensor stands, in bytes.
struct ExternalRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// What is wrong with the data of an external tensor.
struct ExternalFault : StructureFault {
  std::string_view short_file;  ///< the file that ends before the tensor's data does; empty for other faults
  std::uint64_t file_size = 0;  ///< of that file
  std::uint64_t file_need = 0;  ///< bytes that all tensors need of that file
};

/// Offset and length as the tensor gives them (decimal digits, nothing else), held against its dims and dtype. A length
/// that is not given follows from dims. Errors: not a number, overflow, a length that is not what dims take, data past
/// the end of a file of `file_size` bytes (`ends_past`, where it is given, says at which byte).
Result<ExternalRange> external_range(const Tensor& tensor, std::uint64_t file_size, std::uint64_t* ends_past = nullptr);

/// The files that the model's tensors keep their data in, each once: locations as they are written, but without empty
/// components and `.`, in the order of the model.
std::vector<std::string> external_locations(const Model& model);

/// Checks every external tensor of the model, weights unread: each file is opened once, ranges are compared with its
/// size. One fault (kBrokenExternalData) per tensor whose range is wrong and one per file that cannot be opened, 1,000
/// at most.
std::vector<ExternalFault> check_external_data(const Model& model);
std::vector<ExternalFault> check_external_data(const Model& model, ExternalFolder& folder);

}  // namespace tensorlint

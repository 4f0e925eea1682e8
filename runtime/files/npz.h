#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_bytes.h"
#include "base/result.h"
#include "runtime/values/host_tensor.h"

namespace tensorlint::runtime {

/// The arrays of a `.npz` file, which is a ZIP archive of `.npy` files, stored or deflated (PKWARE APPNOTE 6.3, with
/// the 64-bit sizes of numpy). Nothing is unpacked before it is asked for, and nothing beyond the memory limit.
class NpzFile {
 public:
  struct Member {
    std::string name;  ///< without `.npy`
    std::uint16_t method = 0;
    std::uint64_t packed = 0, unpacked = 0, header = 0;  ///< sizes, and where its local header lies
    std::uint32_t checksum = 0;
  };

  /// Errors: as of FileBytes, not a ZIP archive, cut short, encrypted or otherwise packed members, members that
  /// share their bytes, names that occur twice, more members than kMostMembers.
  static Result<NpzFile> open(const std::string& path);
  static constexpr std::size_t kMostMembers = 1'000'000;

  const std::vector<Member>& members() const { return members_; }
  /// Errors name the member: damaged bytes, a dtype that is not read, more than `memory` has left.
  Result<HostTensor> read(const Member& member, Memory& memory) const;

 private:
  std::shared_ptr<const FileBytes> file_;
  std::vector<Member> members_;
};

}  // namespace tensorlint::runtime

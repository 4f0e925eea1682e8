#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "base/descriptor.h"
#include "runtime/files/npz.h"
#include "runtime/files/value_file.h"
#include "tests/fuzz/fuzz_target.h"

namespace tensorlint::fuzz {
namespace {

constexpr std::uint64_t kMemory = std::uint64_t{16} << 20;

void hold(const Result<runtime::HostTensor>& tensor) {
  require(tensor || !tensor.error().message.empty(), "an error says something");
  if (!tensor) return;
  std::size_t elements = 1;
  for (const std::int64_t extent : tensor->extents()) {
    require(extent >= 0, "extents are counts");
    elements *= static_cast<std::size_t>(extent);
  }
  require(elements == tensor->size(), "a tensor has as many elements as its extents say");
}

/// All members of an archive that lies in memory.
void read_archive(std::string_view bytes, runtime::Memory& memory) {
  const Descriptor file(::memfd_create("values", MFD_CLOEXEC));
  require(file.ok(), "the system gives a file in memory");
  require(::write(file.number(), bytes.data(), bytes.size()) == static_cast<::ssize_t>(bytes.size()),
          "the file in memory is written");
  const auto archive = runtime::NpzFile::open("/proc/self/fd/" + std::to_string(file.number()));
  require(archive || !archive.error().message.empty(), "an error says something");
  if (!archive) return;
  for (const runtime::NpzFile::Member& member : archive->members()) hold(archive->read(member, memory));
}

}  // namespace

void values(std::string_view bytes) {
  runtime::Memory memory(kMemory);
  if (bytes.starts_with('\x93')) {
    hold(runtime::read_npy(bytes, memory));
  } else {
    read_archive(bytes, memory);
  }
  require(memory.live() == 0, "all memory is given back");
  require(memory.peak() <= kMemory, "memory stays within its limit");
}

}  // namespace tensorlint::fuzz

#include "runtime/files/npz.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <memory_resource>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/escape.h"
#include "runtime/files/value_file.h"

namespace tensorlint::runtime {
namespace {

constexpr std::uint64_t kIn64 = 0xffffffff;  // a 32-bit size that says: look into the extra field

/// Little-endian numbers of a record that lies in `bytes` as a whole.
class Record {
 public:
  Record(std::string_view bytes, std::uint64_t at, std::uint64_t size) {
    if (at > bytes.size() || size > bytes.size() - at) throw RunFault{"the archive is cut short"};
    bytes_ = bytes.substr(static_cast<std::size_t>(at), static_cast<std::size_t>(size));
  }
  std::uint64_t number(std::size_t at, std::size_t bytes) const {
    std::uint64_t result = 0;
    for (std::size_t i = bytes; i-- > 0;) result = result << 8 | static_cast<std::uint8_t>(bytes_[at + i]);
    return result;
  }
  bool begins(std::string_view signature) const { return bytes_.starts_with(signature); }
  std::string_view bytes() const { return bytes_; }

 private:
  std::string_view bytes_;
};

struct Directory {
  std::uint64_t count = 0, size = 0, offset = 0;
  std::uint64_t end = 0;  ///< where the records after it begin
};

/// The record at the end of an archive, before a comment of up to 64 KiB.
Directory directory_of(std::string_view file) {
  constexpr std::size_t kEnd = 22, kLocator = 20, kEnd64 = 56;
  const std::size_t reach = std::min<std::size_t>(file.size(), kEnd + 0xffff);
  const std::string_view tail = file.substr(file.size() - reach);
  const std::size_t found = tail.rfind("PK\x05\x06");
  if (found == std::string_view::npos) throw RunFault{"not a .npz file, or it is cut short"};
  const std::uint64_t at = file.size() - reach + found;
  const Record end(file, at, kEnd);
  if (at + kEnd + end.number(20, 2) != file.size()) throw RunFault{"bytes follow the end of the archive"};
  Directory result{end.number(10, 2), end.number(12, 4), end.number(16, 4), at};
  if (result.count != 0xffff && result.size != kIn64 && result.offset != kIn64) return result;
  if (at < kLocator) throw RunFault{"the archive is cut short"};
  const Record locator(file, at - kLocator, kLocator);
  if (!locator.begins("PK\x06\x07")) return result;
  const std::uint64_t at64 = locator.number(8, 8);
  const Record end64(file, at64, kEnd64);
  if (!end64.begins("PK\x06\x06")) throw RunFault{"the archive is damaged"};
  return {end64.number(32, 8), end64.number(40, 8), end64.number(48, 8), at64};
}

/// The 64-bit sizes of the extra field take the place of those that did not fit.
void widen(NpzFile::Member& member, std::string_view extra) {
  while (extra.size() >= 4) {
    const Record head(extra, 0, 4);
    const Record field(extra, 4, head.number(2, 2));
    if (head.number(0, 2) == 1) {
      std::size_t at = 0;
      for (std::uint64_t* const size : {&member.unpacked, &member.packed, &member.header}) {
        if (*size != kIn64) continue;
        if (at + 8 > field.bytes().size()) throw RunFault{"the archive is damaged"};
        *size = field.number(at, 8);
        at += 8;
      }
    }
    extra.remove_prefix(4 + field.bytes().size());
  }
}

/// What lies at the place that the directory names.
struct Local {
  std::string_view name, packed;
};

Local local_of(std::string_view file, const NpzFile::Member& member) {
  constexpr std::size_t kHeader = 30;
  const Record local(file, member.header, kHeader);
  if (!local.begins("PK\x03\x04")) throw RunFault{"the archive is damaged"};
  const std::uint64_t name = local.number(26, 2), extra = local.number(28, 2);
  return {Record(file, member.header + kHeader, name).bytes(),
          Record(file, member.header + kHeader + name + extra, member.packed).bytes()};
}

std::vector<NpzFile::Member> members_of(std::string_view file) {
  constexpr std::size_t kEntry = 46;
  const Directory directory = directory_of(file);
  if (directory.count > NpzFile::kMostMembers)
    throw RunFault{fmt::format("it has {} members, more than {}", directory.count, NpzFile::kMostMembers)};
  std::vector<NpzFile::Member> members;
  std::set<std::string, std::less<>> names;
  std::uint64_t at = directory.offset;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;  // of members
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    const Record entry(file, at, kEntry);
    if (!entry.begins("PK\x01\x02")) throw RunFault{"the archive is damaged"};
    const std::uint64_t name = entry.number(28, 2), extra = entry.number(30, 2), comment = entry.number(32, 2);
    NpzFile::Member member{.name = std::string(Record(file, at + kEntry, name).bytes()),
                           .method = static_cast<std::uint16_t>(entry.number(10, 2)),
                           .packed = entry.number(20, 4),
                           .unpacked = entry.number(24, 4),
                           .header = entry.number(42, 4),
                           .checksum = static_cast<std::uint32_t>(entry.number(16, 4))};
    widen(member, Record(file, at + kEntry + name, extra).bytes());
    if ((entry.number(8, 2) & 1U) != 0) throw RunFault{"a member is encrypted"};
    if (!member.name.ends_with(".npy"))
      throw RunFault{fmt::format("the member {} is not a .npy file", quoted_for_people(member.name))};
    member.name.resize(member.name.size() - 4);
    if (!names.insert(member.name).second)
      throw RunFault{fmt::format("the name {} occurs twice", quoted_for_people(member.name))};
    const std::string_view packed = local_of(file, member).packed;
    ranges.emplace_back(member.header, static_cast<std::uint64_t>(packed.data() + packed.size() - file.data()));
    members.push_back(std::move(member));
    at += kEntry + name + extra + comment;
  }
  if (at - directory.offset != directory.size || at != directory.end)
    throw RunFault{fmt::format("its directory continues after the {} members that it counts", directory.count)};
  // One packed array under many names would be unpacked as often.
  std::ranges::sort(ranges);
  for (std::size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].first < ranges[i - 1].second) throw RunFault{"members overlap"};
  return members;
}

/// Exactly `size` bytes of a raw deflate stream (RFC 1951).
std::pmr::string inflated(std::string_view packed, std::size_t size, Memory& memory) {
  // A match of 258 bytes takes two bits at least: what claims more is refused before memory is taken for it.
  constexpr std::size_t kMostRatio = 1032;
  if (size / kMostRatio > packed.size()) throw RunFault{"a member is shorter than the archive says"};
  std::pmr::string result(size, '\0', memory.resource());
  ::z_stream stream{};
  if (::inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw RunFault{"out of memory"};
  const std::unique_ptr<::z_stream, int (*)(::z_stream*)> guard(&stream, ::inflateEnd);
  constexpr std::size_t kMost = std::numeric_limits<::uInt>::max();
  std::size_t read = 0, written = 0;
  int status = Z_OK;
  ::Bytef beyond = 0;  // a byte more than there should be
  while (status == Z_OK) {
    const std::size_t in = std::min(packed.size() - read, kMost), out = std::min(size - written, kMost);
    stream.next_in = reinterpret_cast<::Bytef*>(const_cast<char*>(packed.data() + read));
    stream.avail_in = static_cast<::uInt>(in);
    const bool is_full = out == 0;
    stream.next_out = is_full ? &beyond : reinterpret_cast<::Bytef*>(result.data() + written);
    stream.avail_out = is_full ? 1 : static_cast<::uInt>(out);
    const ::uInt room = stream.avail_out;
    status = ::inflate(&stream, Z_NO_FLUSH);
    read += in - stream.avail_in;
    const std::size_t made = room - stream.avail_out;
    if (is_full && made != 0) throw RunFault{"a member is longer than the archive says"};
    written += is_full ? 0 : made;
  }
  if (status != Z_STREAM_END || written != size || read != packed.size())
    throw RunFault{"the compressed bytes are damaged"};
  return result;
}

}  // namespace

Result<NpzFile> NpzFile::open(const std::string& path) {
  Result<std::shared_ptr<const FileBytes>> file = FileBytes::open(path);
  if (!file) return Error{fmt::format("{}: {}", path, file.error().message), {}};
  NpzFile result;
  result.file_ = *file;
  try {
    result.members_ = members_of((*file)->bytes());
  } catch (const RunFault& fault) {
    return Error{fmt::format("{}: {}", path, fault.message), {}};
  }
  return result;
}

Result<HostTensor> NpzFile::read(const Member& member, Memory& memory) const {
  const auto fail = [&](std::string_view why) {
    return Error{fmt::format("{}: {}", quoted_for_people(member.name), why), {}};
  };
  try {
    const auto [name, packed] = local_of(file_->bytes(), member);
    if (name != member.name + ".npy") throw RunFault{"the member has another name than in the directory"};
    memory.take(member.unpacked);  // throws where the limit leaves less, before anything is unpacked
    memory.give_back(member.unpacked);
    std::pmr::string unpacked(memory.resource());
    if (member.method == 8) {
      unpacked = inflated(packed, static_cast<std::size_t>(member.unpacked), memory);
    } else if (member.method != 0 || member.packed != member.unpacked) {
      return fail(fmt::format("the compression method {} is not read", member.method));
    }
    const std::string_view bytes = member.method == 8 ? std::string_view(unpacked) : packed;
    const auto checksum = ::crc32_z(0, reinterpret_cast<const ::Bytef*>(bytes.data()), bytes.size());
    if (checksum != member.checksum) return fail("the checksum differs: the bytes are damaged");
    Result<HostTensor> tensor = read_npy(bytes, memory);
    return tensor ? std::move(tensor) : Result<HostTensor>(fail(tensor.error().message));
  } catch (const RunFault& fault) {
    return fail(fault.message);
  } catch (const std::bad_alloc&) {
    return fail("out of memory");
  }
}

}  // namespace tensorlint::runtime

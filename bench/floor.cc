// What loading a model costs at least, as a yardstick for the checker: maps the file, visits every field of every
// message down to tensors and types, gives each value name a number in a hash table, and keeps 32 bytes a node and 4 an
// edge.
//
//   bench_floor MODEL      prints the seconds of one pass over a fresh mapping, page faults included
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <protozero/pbf_reader.hpp>
#include <vector>

namespace {

using protozero::data_view;
using protozero::pbf_reader;
using protozero::pbf_wire_type;

enum Kind : std::uint8_t {
  kLeaf,
  kModel,
  kGraph,
  kFunction,
  kNode,
  kAttribute,
  kTensor,
  kValue,
  kType,
  kTensorType,
  kShape,
  kDim,
  kPair
};

/// What a field of a message holds: onnx.proto's field numbers.
Kind inside(Kind kind, std::uint32_t field) {
  switch (kind) {
    case kModel:
      return field == 7 ? kGraph : field == 25 ? kFunction : field == 8 || field == 14 ? kPair : kLeaf;
    case kGraph:
      return field == 1                   ? kNode
             : field == 5                 ? kTensor
             : field >= 11 && field <= 13 ? kValue
             : field == 16                ? kPair
                                          : kLeaf;
    case kFunction:
      return field == 7                  ? kNode
             : field == 11               ? kAttribute
             : field == 12               ? kValue
             : field == 9 || field == 14 ? kPair
                                         : kLeaf;
    case kNode:
      return field == 5 ? kAttribute : field == 9 ? kPair : kLeaf;
    case kAttribute:
      return field == 5 || field == 10 ? kTensor : field == 6 || field == 11 ? kGraph : field == 14 ? kType : kLeaf;
    case kTensor:
      return field == 13 || field == 16 ? kPair : kLeaf;
    case kValue:
      return field == 2 ? kType : field == 4 ? kPair : kLeaf;
    case kType:
      return field == 1 || field == 8 ? kTensorType : kLeaf;
    case kTensorType:
      return field == 2 ? kShape : kLeaf;
    case kShape:
      return field == 1 ? kDim : kLeaf;
    default:
      return kLeaf;
  }
}

class Names {
 public:
  std::uint32_t number(data_view name) {
    if ((count_ + 1) * 10 > slots_.size() * 7) grow();
    std::uint64_t hash = 0x9e3779b97f4a7c15ULL + name.size();
    for (std::size_t i = 0; i < name.size(); i += 8) {
      std::uint64_t part = 0;
      std::memcpy(&part, name.data() + i, name.size() - i < 8 ? name.size() - i : 8);
      hash = (hash ^ part) * 0xd6e8feb86659fd93ULL;
      hash ^= hash >> 32;
    }
    for (std::size_t at = hash & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[at];
      if (slot.name == nullptr) {
        slot = {hash, name.data(), static_cast<std::uint32_t>(name.size()), count_};
        return count_++;
      }
      if (slot.hash == hash && slot.length == name.size() && std::memcmp(slot.name, name.data(), name.size()) == 0)
        return slot.number;
    }
  }

 private:
  struct Slot {
    std::uint64_t hash;
    const char* name;
    std::uint32_t length, number;
  };
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.name == nullptr) continue;
      std::size_t at = slot.hash & (slots_.size() - 1);
      while (slots_[at].name != nullptr) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }
  std::vector<Slot> slots_ = std::vector<Slot>(1024);
  std::uint32_t count_ = 0;
};

struct NodeRecord {
  std::uint32_t numbers[8];
};

struct Built {
  Names names;
  std::vector<NodeRecord> nodes;
  std::vector<std::uint32_t> edges;
};

void walk(Kind kind, pbf_reader message, Built& built) {
  NodeRecord record{};
  while (message.next()) {
    const std::uint32_t field = message.tag();
    if (message.wire_type() != pbf_wire_type::length_delimited) {
      message.skip();
      continue;
    }
    const data_view bytes = message.get_view();
    const Kind next = inside(kind, field);
    if (next != kLeaf) {
      walk(next, pbf_reader(bytes), built);
    } else if (kind == kNode && (field == 1 || field == 2)) {
      built.edges.push_back(built.names.number(bytes));
      ++record.numbers[field];
    } else if ((kind == kTensor && field == 8) || (kind == kValue && field == 1)) {
      built.names.number(bytes);
    }
  }
  if (kind == kNode) {
    record.numbers[0] = static_cast<std::uint32_t>(built.edges.size());
    built.nodes.push_back(record);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: bench_floor MODEL\n");
    return 2;
  }
  const auto start = std::chrono::steady_clock::now();
  const int file = ::open(argv[1], O_RDONLY);
  struct ::stat status{};
  if (file < 0 || ::fstat(file, &status) != 0 || status.st_size == 0) {
    std::perror(argv[1]);
    return 2;
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const bytes = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  if (bytes == MAP_FAILED) {
    std::perror(argv[1]);
    return 2;
  }
  try {
    Built built;
    walk(kModel, pbf_reader(static_cast<const char*>(bytes), size), built);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("%.9f %zu\n", seconds, built.nodes.size());
  } catch (const protozero::exception& fault) {
    std::fprintf(stderr, "%s: %s\n", argv[1], fault.what());
    return 2;
  }
  return 0;
}

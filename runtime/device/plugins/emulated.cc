// libtensorlint_emulated.so: the kernels under their emulator, as a device. It is a test of the code that drives
// devices, not a stand-in for one: its memory is the program's own, but nobody can reach that outside of copies and
// launches (PROT_NONE), blocks lie between red zones, a block belongs to one device, what is read was written before,
// what the emulator complains about is an error, and every call can be made to fail.

#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <vector>

#include "kernels/common/workspace.h"
#include "kernels/emulator/simt.h"
#include "runtime/device/plugins/plugin.h"

namespace tensorlint::plugins {
namespace {

constexpr int kDevices = 2;
constexpr unsigned char kRed = 0xa7;
constexpr std::size_t kAlignment = 16;  // of the widest access of a kernel

std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

/// Pages between two that are never reachable. The data ends at their end, but for its alignment; the rest is red.
struct Block {
  unsigned char* mapping = nullptr;
  std::size_t mapped = 0;  ///< with the pages around it
  unsigned char* first = nullptr;
  std::size_t pages = 0;  ///< bytes of the pages from `first` on
  unsigned char* data = nullptr;
  std::size_t bytes = 0;
  bool is_written = false;

  bool reach(bool on) const { return ::mprotect(first, pages, on ? PROT_READ | PROT_WRITE : PROT_NONE) == 0; }
  /// While it is reachable.
  bool is_intact() const {
    for (const unsigned char* at = first; at < first + pages; ++at) {
      if (at == data) at += bytes;
      if (at < first + pages && *at != kRed) return false;
    }
    return true;
  }
};

class EmulatedDevice {
 public:
  PluginState state;

  static EmulatedDevice* open(int index, std::uint64_t memory_limit, std::string& error) {
    if (index >= kDevices) {
      error = "there are " + std::to_string(kDevices) + " emulated devices";
      return nullptr;
    }
    auto* const device = new EmulatedDevice;
    device->state.memory_limit = memory_limit;
    return device;
  }
  ~EmulatedDevice() {
    for (auto& [address, block] : blocks_) ::munmap(block.mapping, block.mapped);
    if (workspace_.mapping != nullptr) ::munmap(workspace_.mapping, workspace_.mapped);
  }

  void fail_at(std::uint64_t call) { failing_ = call == 0 ? 0 : state.counts.calls + call; }

  void* allocate(std::size_t bytes) {
    if (begin("allocate") != 0) return nullptr;
    tensorlint_device_counts& counts = state.counts;
    if (bytes > state.memory_limit || counts.live_bytes > state.memory_limit - bytes) {
      state.fail("a block of " + std::to_string(bytes) + " bytes exceeds the limit of " +
                 std::to_string(state.memory_limit) + " bytes of device memory");
      return nullptr;
    }
    Block block;
    if (!map(bytes, block)) return nullptr;
    ++counts.live_blocks;
    counts.live_bytes += bytes;
    counts.peak_bytes = counts.peak_bytes < counts.live_bytes ? counts.live_bytes : counts.peak_bytes;
    return blocks_.emplace(block.data, block).first->second.data;
  }

  void release(void* address) {
    const auto found = blocks_.find(static_cast<unsigned char*>(address));
    if (found == blocks_.end()) return;
    --state.counts.live_blocks;
    state.counts.live_bytes -= found->second.bytes;
    ::munmap(found->second.mapping, found->second.mapped);
    blocks_.erase(found);
  }

  int copy_in(void* to, const void* from, std::size_t bytes) {
    if (const int failed = begin("copy_in"); failed != 0) return failed;
    return touch("copy_in", to, bytes, [&](Block& block) {
      std::memcpy(to, from, bytes);
      block.is_written |= bytes == block.bytes;
      ++state.counts.copies_in;
      state.counts.bytes_in += bytes;
      return 0;
    });
  }

  int copy_out(void* to, const void* from, std::size_t bytes) {
    if (const int failed = begin("copy_out"); failed != 0) return failed;
    return touch("copy_out", from, bytes, [&](Block& block) {
      if (!block.is_written) return state.fail("copy_out: the block was never written");
      std::memcpy(to, from, bytes);
      ++state.counts.copies_out;
      state.counts.bytes_out += bytes;
      return 0;
    });
  }

  int fill(void* to, unsigned char byte, std::size_t bytes) {
    if (const int failed = begin("fill"); failed != 0) return failed;
    return touch("fill", to, bytes, [&](Block& block) {
      std::memset(to, byte, bytes);
      block.is_written |= bytes == block.bytes;
      return 0;
    });
  }

  int synchronize() { return begin("synchronize"); }

  /// Kept for the next launch; its tickets are zero between launches, and the rest means nothing.
  void* workspace(std::size_t bytes) {
    if (bytes <= workspace_.bytes) return workspace_.data;
    if (workspace_.mapping != nullptr) ::munmap(workspace_.mapping, workspace_.mapped);
    workspace_ = {};
    if (!map(bytes, workspace_)) return nullptr;
    workspace_.reach(true);
    std::memset(workspace_.data, 0, bytes < kernels::kTicketBytes ? bytes : kernels::kTicketBytes);
    workspace_.reach(false);
    return workspace_.data;
  }

  template <typename Launch>
  int launch(const KernelOperand* operands, std::size_t count, const Launch& launch) {
    if (const int failed = begin("launch"); failed != 0) return failed;
    std::vector<Block*> reached;
    int failed = 0;
    for (std::size_t i = 0; i < count && failed == 0; ++i)
      if (operands[i].address != nullptr) failed = reach(operands[i], reached);
    if (failed == 0 && workspace_.data != nullptr) {
      workspace_.reach(true);
      kernels::emulator::register_buffer(workspace_.data, workspace_.bytes, 4, kernels::emulator::Access::kWriteFirst,
                                         "workspace");
      const std::size_t tickets = workspace_.bytes < kernels::kTicketBytes ? workspace_.bytes : kernels::kTicketBytes;
      kernels::emulator::mark_written(workspace_.data, tickets);
    }
    kernels::emulator::clear_report();
    if (failed == 0) failed = launch(nullptr);
    const kernels::emulator::Report& report = kernels::emulator::report();
    if (failed == 0 && !report.clean()) failed = state.fail("the emulator complains: " + report.first);
    if (workspace_.data != nullptr) {
      kernels::emulator::unregister_buffer(workspace_.data);
      workspace_.reach(false);
    }
    for (Block* const block : reached) {
      if (block->bytes > 0) kernels::emulator::unregister_buffer(block->data);
      if (failed == 0 && !block->is_intact()) failed = state.fail("a kernel wrote outside of its operands");
      block->reach(false);
    }
    if (failed == 0)
      for (std::size_t i = 0; i < count; ++i)
        if (operands[i].address != nullptr && operands[i].is_output) find(operands[i].address)->is_written = true;
    return failed;
  }

 private:
  /// Counts the call; fails where it is to.
  int begin(const char* call) {
    if (++state.counts.calls != failing_) return 0;
    failing_ = 0;
    return state.fail(std::string(call) + ": made to fail");
  }

  bool map(std::size_t bytes, Block& block) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    if (bytes > SIZE_MAX / 2) return state.fail("the system has no memory left"), false;
    block.pages = round_up(bytes + kAlignment, page);
    block.mapped = block.pages + 2 * page;
    void* const mapping = ::mmap(nullptr, block.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) return state.fail("the system has no memory left"), false;
    block.mapping = static_cast<unsigned char*>(mapping);
    block.first = block.mapping + page;
    block.bytes = bytes;
    block.data = block.first + block.pages - round_up(bytes, kAlignment);
    if (bytes == 0) block.data -= kAlignment;
    if (!block.reach(true)) {
      ::munmap(block.mapping, block.mapped);
      block = {};
      return state.fail("the system has no memory left"), false;
    }
    std::memset(block.first, kRed, block.pages);
    block.reach(false);
    return true;
  }

  /// Null, with an error, where the address is not the beginning of a block of this device.
  Block* find(const void* address) {
    const auto found = blocks_.find(static_cast<unsigned char*>(const_cast<void*>(address)));
    return found == blocks_.end() ? nullptr : &found->second;
  }

  template <typename Touch>
  int touch(const char* call, const void* address, std::size_t bytes, const Touch& touch) {
    Block* const block = find(address);
    if (block == nullptr) return state.fail(std::string(call) + ": the address is not a block of this device");
    if (bytes > block->bytes) return state.fail(std::string(call) + ": more bytes than the block has");
    block->reach(true);
    int failed = touch(*block);
    if (failed == 0 && !block->is_intact()) failed = state.fail(std::string(call) + ": the red zone was written");
    block->reach(false);
    return failed;
  }

  int reach(const KernelOperand& operand, std::vector<Block*>& reached) {
    Block* const block = find(operand.address);
    if (block == nullptr) return state.fail("launch: an operand is not a block of this device");
    if (!operand.is_output && !block->is_written) return state.fail("launch: an operand was never written");
    for (const Block* const other : reached)
      if (other == block) return operand.is_output ? state.fail("launch: an output is an operand, too") : 0;
    block->reach(true);
    reached.push_back(block);
    if (block->bytes > 0)
      kernels::emulator::register_buffer(
          block->data, block->bytes, operand.element_bytes,
          operand.is_output ? kernels::emulator::Access::kWriteFirst : kernels::emulator::Access::kReadOnly,
          operand.is_output ? "a result" : "an operand");
    return 0;
  }

  std::map<unsigned char*, Block> blocks_;  ///< by their data
  Block workspace_;
  std::uint64_t failing_ = 0;  ///< the number of a call
};

}  // namespace
}  // namespace tensorlint::plugins

extern "C" __attribute__((visibility("default"))) const tensorlint_device_table_v1* tensorlint_device_v1() {
  using Table = tensorlint::plugins::PluginTable<tensorlint::plugins::EmulatedDevice>;
  return Table::table("emulated",
                      [](tensorlint_device* device, std::uint64_t call) { Table::self(device)->fail_at(call); });
}

#include "runtime/device/device.h"

#include <dlfcn.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "runtime/values/memory.h"

namespace tensorlint::runtime {
namespace {

struct DeviceName {
  std::string kind;
  int index = 0;
};

/// "cuda:0": a kind that there is, and a number.
std::optional<DeviceName> parse(std::string_view name) {
  const std::size_t colon = name.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  DeviceName parsed{.kind = std::string(name.substr(0, colon))};
  const std::string_view number = name.substr(colon + 1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), parsed.index);
  const bool known = parsed.kind == "cuda" || parsed.kind == "emulated";
  if (!known || error != std::errc() || end != number.data() + number.size() || parsed.index < 0) return std::nullopt;
  return parsed;
}

/// Beside the program, or where installations have libraries. Empty where neither has it.
std::string plugin_path(const std::string& file) {
  std::error_code unknown;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  if (unknown) return {};
  for (const std::filesystem::path& folder : {program.parent_path(), program.parent_path() / "../lib"})
    if (std::filesystem::exists(folder / file, unknown)) return folder / file;
  return {};
}

}  // namespace

Result<std::unique_ptr<Device>> Device::open(std::string_view name, std::uint64_t memory_limit) {
  const std::optional<DeviceName> parsed = parse(name);
  if (!parsed) return Error{fmt::format("`{}` is not a device: cpu, cuda:N or emulated:N", name), {}};
  const std::string file = fmt::format("libtensorlint_{}.so", parsed->kind);
  const std::string path = plugin_path(file);
  if (path.empty())
    return Error{fmt::format("{} needs {}, which is not installed beside this program", name, file), {}};
  // Never closed: kernels register themselves with the CUDA runtime, and threads of it may outlive a device.
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Error{fmt::format("{}: {} cannot be loaded: {}", name, file, ::dlerror()), {}};
  auto* const function = reinterpret_cast<tensorlint_device_v1_function*>(::dlsym(library, "tensorlint_device_v1"));
  const tensorlint_device_table_v1* const table = function == nullptr ? nullptr : function();
  if (table == nullptr || table->version != 1 || table->request_bytes != tensorlint_request_bytes())
    return Error{fmt::format("{}: {} is of another version of tensorlint", name, file), {}};
  std::array<char, 256> error{};
  tensorlint_device* const handle = table->open(parsed->index, memory_limit, error.data(), error.size());
  if (handle == nullptr) return Error{fmt::format("{}: {}", name, error.data()), {}};
  return std::unique_ptr<Device>(new Device(std::string(name), memory_limit, table, handle));
}

Device::~Device() { table_->close(handle_); }

DeviceBlock::~DeviceBlock() {
  if (data_ != nullptr) device_->table_->release(device_->handle_, data_);
}

DeviceValue::~DeviceValue() {
  if (data_ != nullptr) device_->table_->end_value(device_->handle_, data_);
}

void Device::check(int status) const {
  if (status == 0) return;
  DeviceFault fault{{fmt::format("{}: {}", name_, table_->error(handle_))}, {}};
  const std::uint64_t step = table_->failed_step(handle_);
  fault.is_of_earlier_work = step == kTensorlintUnknownStep;
  if (step != kTensorlintNoStep && !fault.is_of_earlier_work) fault.step = step;
  throw fault;
}

DeviceBlock Device::allocate(std::size_t bytes) {
  void* const data = table_->allocate(handle_, bytes);
  check(data == nullptr ? 1 : 0);
  return {this, data};
}

DeviceValue Device::place(const DeviceBlock& block, std::uint64_t offset, std::size_t bytes) {
  void* const data = table_->begin_value(handle_, block.data_, offset, bytes);
  check(data == nullptr ? 1 : 0);
  return {this, data};
}

void Device::copy_in(const DeviceValue& to, const void* from, std::size_t bytes) {
  check(table_->copy_in(handle_, to.data(), from, bytes));
}

void Device::copy_out(void* to, const DeviceValue& from, std::size_t bytes) {
  check(table_->copy_out(handle_, to, from.data(), bytes));
}

void Device::synchronize() { check(table_->synchronize(handle_)); }

void Device::make_events(std::uint32_t count) { check(table_->make_events(handle_, count)); }

void Device::record(Stream stream, std::uint32_t event) { check(table_->record(handle_, stream, event)); }

void Device::wait(Stream stream, std::uint32_t event) { check(table_->wait(handle_, stream, event)); }

void Device::host_wait(std::uint32_t event) { check(table_->host_wait(handle_, event)); }

void Device::reduce(const kernels::Reduction& request, const void* input, void* result) {
  check(table_->reduce(handle_, &request, input, result));
}

void Device::pointwise_loss(const kernels::PointwiseLoss& request) { check(table_->pointwise_loss(handle_, &request)); }

void Device::class_loss(const kernels::ClassLoss& request) { check(table_->class_loss(handle_, &request)); }

void Device::softmax(const kernels::Softmax& request) { check(table_->softmax(handle_, &request)); }

void Device::matrix_product(const kernels::MatrixProduct& request) { check(table_->matrix_product(handle_, &request)); }

void Device::elementwise(const kernels::Elementwise& request) { check(table_->elementwise(handle_, &request)); }

void Device::convolution(const kernels::Convolution& request) { check(table_->convolution(handle_, &request)); }

void Device::pooling(const kernels::Pooling& request) { check(table_->pooling(handle_, &request)); }

void Device::attention(const kernels::Attention& request) { check(table_->attention(handle_, &request)); }
void Device::normalization(const kernels::Normalization& request) { check(table_->normalization(handle_, &request)); }

void Device::move(const kernels::Movement& request) { check(table_->move(handle_, &request)); }

std::optional<Error> Device::load_cublaslt(const std::string& file, bool uses_tf32) {
  if (table_->load_cublaslt(handle_, file.c_str(), uses_tf32 ? 1 : 0) == 0) return std::nullopt;
  return Error{fmt::format("{}: {}", name_, table_->error(handle_)), {}};
}

std::string Device::why_not_cublaslt(const kernels::MatrixProduct& request, bool has_addend) const {
  const char* const why = table_->why_not_cublaslt(&request, has_addend ? 1 : 0);
  return why == nullptr ? std::string() : std::string(why);
}

void Device::cublaslt_product(const kernels::MatrixProduct& request) {
  check(table_->cublaslt_product(handle_, &request));
}

bool Device::fail_at(std::uint64_t call, bool late) {
  if (table_->fail_at != nullptr) table_->fail_at(handle_, call, late);
  return table_->fail_at != nullptr;
}

bool Device::fail_open_at(std::uint64_t call) {
  if (table_->fail_at != nullptr) table_->fail_at(nullptr, call, false);
  return table_->fail_at != nullptr;
}

bool Device::skip_wait(std::uint64_t wait) {
  if (table_->skip_wait != nullptr) table_->skip_wait(handle_, wait);
  return table_->skip_wait != nullptr;
}

bool Device::hide_steps(bool hidden) {
  if (table_->hide_steps != nullptr) table_->hide_steps(handle_, hidden);
  return table_->hide_steps != nullptr;
}

bool Device::use_seed(std::uint64_t seed) {
  if (table_->use_seed != nullptr) table_->use_seed(handle_, seed);
  return table_->use_seed != nullptr;
}

}  // namespace tensorlint::runtime

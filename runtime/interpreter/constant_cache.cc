#include "runtime/interpreter/constant_cache.h"

#include <optional>
#include <utility>

namespace tensorlint::runtime {
namespace {

/// Beside elements: of the tensor itself and its place in the cache, about.
constexpr std::uint64_t kEntryBytes = 512;

/// What keeping a value takes; nullopt where that is not known.
std::optional<std::uint64_t> bytes_of(const HostValue& value) {
  if (value.is_absent()) return 0;
  if (!value.is_tensor() || value.dtype() == DType::kString) return std::nullopt;
  return kEntryBytes + (value.tensor().is_view() ? 0 : value.tensor().bytes());
}

template <typename Map>
auto found(const Map& map, const typename Map::key_type& key) {
  const auto at = map.find(key);
  return at == map.end() ? typename Map::mapped_type() : at->second;
}

}  // namespace

ConstantCache::ConstantCache(Memory& memory) : memory_(memory) {
  if (memory_.reserve() == nullptr) memory_.set_reserve(this);
}

ConstantCache::~ConstantCache() {
  if (memory_.reserve() == this) memory_.set_reserve(nullptr);
}

bool ConstantCache::has_room(std::uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  // Without a way to give memory up nothing is kept.
  return memory_.reserve() == this && bytes <= kMost - bytes_ && memory_.has_room(bytes);
}

bool ConstantCache::count(std::uint64_t bytes) {
  if (memory_.reserve() != this || bytes > kMost - bytes_) return false;
  bytes_ += bytes;
  return true;
}

ConstantCache::Results ConstantCache::results(NodeId node) {
  const std::lock_guard lock(mutex_);
  return found(results_, node);
}

void ConstantCache::keep(NodeId node, const std::vector<HostValue>& results) {
  std::uint64_t bytes = kEntryBytes;
  for (const HostValue& result : results) {
    const auto of_result = bytes_of(result);
    if (!of_result) return;
    bytes += *of_result;
  }
  auto kept = std::make_shared<const std::vector<HostValue>>(results);
  const std::lock_guard lock(mutex_);
  if (!results_.contains(node) && count(bytes)) results_.emplace(node, std::move(kept));
}

HostValue ConstantCache::constant(ValueId value) {
  const std::lock_guard lock(mutex_);
  return found(constants_, value);
}

void ConstantCache::keep(ValueId value, const HostValue& constant) {
  const auto bytes = bytes_of(constant);
  const std::lock_guard lock(mutex_);
  if (bytes && !constants_.contains(value) && count(*bytes)) constants_.emplace(value, constant);
}

ConstantCache::Weights ConstantCache::weights(const WeightsKey& key) {
  const std::lock_guard lock(mutex_);
  return found(weights_, key);
}

void ConstantCache::keep(const WeightsKey& key, Weights weights) {
  const std::uint64_t bytes = kEntryBytes + PackedFactor::bytes(weights->inner(), weights->columns());
  const std::lock_guard lock(mutex_);
  if (!weights_.contains(key) && count(bytes)) weights_.emplace(key, std::move(weights));
}

HostTensor ConstantCache::widened(const WeightsKey& key) {
  const std::lock_guard lock(mutex_);
  return found(widened_, key);
}

void ConstantCache::keep(const WeightsKey& key, const HostTensor& widened) {
  const std::uint64_t bytes = kEntryBytes + widened.bytes();
  const std::lock_guard lock(mutex_);
  if (!widened_.contains(key) && count(bytes)) widened_.emplace(key, widened);
}

void ConstantCache::release() {
  const std::lock_guard lock(mutex_);
  results_.clear();
  constants_.clear();
  weights_.clear();
  widened_.clear();
  bytes_ = 0;
}

}  // namespace tensorlint::runtime

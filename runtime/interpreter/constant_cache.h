#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "ir/graph/model.h"
#include "runtime/interpreter/products.h"
#include "runtime/values/host_value.h"

namespace tensorlint::runtime {

/// What earlier calls of nodes made of constants alone: decoded constants, results, weights packed or widened for
/// products. All of it saves time only: it takes kMost bytes at most, and none where tensors need the memory. Holding
/// one of these keeps it alive.
class ConstantCache final : public MemoryReserve {
 public:
  static constexpr std::uint64_t kMost = std::uint64_t{16} << 20;

  explicit ConstantCache(Memory& memory);
  ConstantCache(const ConstantCache&) = delete;
  ConstantCache& operator=(const ConstantCache&) = delete;
  ~ConstantCache() override;

  using Results = std::shared_ptr<const std::vector<HostValue>>;
  using Weights = std::shared_ptr<const PackedFactor>;

  Results results(NodeId node);  ///< null: not kept
  void keep(NodeId node, const std::vector<HostValue>& results);
  HostValue constant(ValueId value);  ///< absent: not kept
  void keep(ValueId value, const HostValue& constant);
  /// Of an operand there may be several parts.
  struct WeightsKey {
    NodeId node;
    int operand;
    std::int64_t part;
    friend auto operator<=>(const WeightsKey&, const WeightsKey&) = default;
  };
  Weights weights(const WeightsKey& key);  ///< null: not kept
  void keep(const WeightsKey& key, Weights weights);
  /// An operand as products read it: of another dtype.
  HostTensor widened(const WeightsKey& key);  ///< absent: not kept
  void keep(const WeightsKey& key, const HostTensor& widened);
  /// For so many bytes that are not allocated yet.
  bool has_room(std::uint64_t bytes) const;

  void release() override;

 private:
  /// Under the lock: counts what is about to be kept; false where there is no room.
  bool count(std::uint64_t bytes);

  Memory& memory_;
  mutable std::mutex mutex_;
  std::uint64_t bytes_ = 0;
  std::map<NodeId, Results> results_;
  std::map<ValueId, HostValue> constants_;
  std::map<WeightsKey, Weights> weights_;
  std::map<WeightsKey, HostTensor> widened_;
};

}  // namespace tensorlint::runtime

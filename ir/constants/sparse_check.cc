#include "ir/constants/sparse_check.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/checked.h"
#include "ir/constants/varint.h"
#include "ir/constants/weight_parts.h"
#include "ir/types/dtype.h"

namespace tensorlint {
namespace {

/// Number of elements of the dense tensor; nullopt where a dim is negative, or on overflow.
std::optional<std::int64_t> dense_count(std::span<const std::int64_t> dims) {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) {
    const auto product = dim < 0 ? std::nullopt : checked::mul(count, dim);
    if (!product) return std::nullopt;
    count = *product;
  }
  return count;
}

/// The position in the flattened tensor of the entry with these coordinates; the axis that is out of range otherwise.
struct Located {
  std::int64_t position = 0;
  std::optional<std::size_t> bad_axis{};
};

Located locate(std::span<const std::int64_t> coordinates, std::span<const std::int64_t> dims) {
  Located located;
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (coordinates[axis] < 0 || coordinates[axis] >= dims[axis]) return {0, axis};
    located.position = located.position * dims[axis] + coordinates[axis];  // below the count, which fits
  }
  return located;
}

/// The int64 elements of a tensor, one after the other.
class Indices {
 public:
  Indices(const Tensor& tensor, const FileBytes* mapping)
      : is_raw_(tensor.has_raw), rest_(is_raw_ ? tensor.raw : tensor.typed), parts_(rest_, mapping) {}

  std::optional<std::int64_t> next() {
    parts_.read_until(rest_.data());
    if (!is_raw_) {
      const auto word = next_varint(rest_);
      return word ? std::optional(static_cast<std::int64_t>(*word)) : std::nullopt;
    }
    std::int64_t index = 0;
    if (rest_.size() < sizeof index) return std::nullopt;
    std::memcpy(&index, rest_.data(), sizeof index);  // little endian, as the machine
    rest_.remove_prefix(sizeof index);
    return index;
  }

 private:
  bool is_raw_;
  std::string_view rest_;
  WeightParts parts_;
};

}  // namespace

std::optional<std::string> sparse_fault(const SparseTensor& tensor, std::string_view name, const FileBytes* mapping) {
  const auto label = [name] {
    return name.empty() ? std::string("a sparse tensor") : fmt::format("sparse tensor `{}`", name);
  };
  const Tensor &values = *tensor.values, &indices = *tensor.indices;
  const auto count = dense_count(tensor.dims);
  if (!count) return fmt::format("dims of {} are negative or overflow", label());
  if (values.dims.size() != 1)
    return fmt::format("values of {} have rank {}, they have to be a list", label(), values.dims.size());
  const std::int64_t entries = values.dims[0];
  if (entries > *count) return fmt::format("{} has {} values, its dims make {} elements", label(), entries, *count);
  if (indices.dtype_code != static_cast<std::int32_t>(DType::kInt64))
    return fmt::format("indices of {} have dtype code {}, they have to be int64", label(), indices.dtype_code);
  const std::size_t rank = indices.dims.size();
  if (rank != 1 && rank != 2)
    return fmt::format("indices of {} have rank {}, they have to have rank 1 or 2", label(), rank);
  if (indices.dims[0] != entries)
    return fmt::format("{} has {} values and {} indices", label(), entries, indices.dims[0]);
  if (rank == 2 && indices.dims[1] != static_cast<std::int64_t>(tensor.dims.size()))
    return fmt::format("indices of {} have {} coordinates each, it has rank {}", label(), indices.dims[1],
                       tensor.dims.size());
  if (indices.external) return std::nullopt;

  Indices rest(indices, mapping);
  std::vector<std::int64_t> coordinates(rank == 1 ? 1 : tensor.dims.size());
  std::int64_t last = -1;
  for (std::int64_t entry = 0; entry < entries; ++entry) {
    for (std::int64_t& coordinate : coordinates) {
      const auto next = rest.next();
      if (!next) return std::nullopt;
      coordinate = *next;
    }
    Located located;
    if (rank == 2) {
      located = locate(coordinates, tensor.dims);
      if (located.bad_axis)
        return fmt::format("index {} of {} is {} along axis {}, which has extent {}", entry, label(),
                           coordinates[*located.bad_axis], *located.bad_axis, tensor.dims[*located.bad_axis]);
    } else {
      located.position = coordinates.front();
      if (located.position < 0 || located.position >= *count)
        return fmt::format("index {} of {} is {}, it has {} elements", entry, label(), located.position, *count);
    }
    if (located.position == last) return fmt::format("indices {} and {} of {} are the same", entry - 1, entry, label());
    if (located.position < last)
      return fmt::format("indices of {} are not sorted: index {} comes before index {}", label(), entry, entry - 1);
    last = located.position;
  }
  return std::nullopt;
}

}  // namespace tensorlint

#include "runtime/values/movement.h"

#include <gtest/gtest.h>

#include <numeric>

namespace tensorlint::runtime {
namespace {

HostTensor counted(Extents extents, Memory& memory) {
  HostTensor tensor(DType::kInt32, std::move(extents), memory);
  const auto elements = tensor.as_mutable<std::int32_t>();
  std::iota(elements.begin(), elements.end(), 0);
  return tensor;
}

std::vector<std::int32_t> elements_of(const HostTensor& tensor) {
  const auto elements = tensor.as<std::int32_t>();
  return {elements.begin(), elements.end()};
}

TEST(Movement, StridesTransposeReverseAndBroadcast) {
  Memory memory(1 << 20);
  const HostTensor from = counted({2, 3}, memory);
  HostTensor transposed(DType::kInt32, {3, 2}, memory);
  copy_strided(transposed, from, 0, std::vector<std::int64_t>{1, 3});
  EXPECT_EQ(elements_of(transposed), (std::vector{0, 3, 1, 4, 2, 5}));
  HostTensor reversed(DType::kInt32, {2, 3}, memory);
  copy_strided(reversed, from, 5, std::vector<std::int64_t>{-3, -1});
  EXPECT_EQ(elements_of(reversed), (std::vector{5, 4, 3, 2, 1, 0}));
  HostTensor stretched(DType::kInt32, {2, 2, 3}, memory);
  copy_strided(stretched, from, 0, std::vector<std::int64_t>{0, 3, 1});
  EXPECT_EQ(elements_of(stretched), (std::vector{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5}));
  HostTensor scalar(DType::kInt32, {}, memory);
  copy_strided(scalar, from, 4, {});
  EXPECT_EQ(elements_of(scalar), (std::vector{4}));
}

TEST(Movement, EveryPermutationMovesEachElementToItsPlace) {
  Memory memory(1 << 20);
  const Extents extents{2, 1, 3, 4};
  const HostTensor from = counted(extents, memory);
  const std::vector<std::int64_t> own = strides_of(extents);
  std::vector<std::size_t> order{0, 1, 2, 3};
  do {
    Extents to_extents;
    std::vector<std::int64_t> strides;
    for (const std::size_t axis : order) to_extents.push_back(extents[axis]), strides.push_back(own[axis]);
    HostTensor to(DType::kInt32, to_extents, memory);
    copy_strided(to, from, 0, strides);
    std::size_t at = 0;
    for (std::int64_t a = 0; a < to_extents[0]; ++a)
      for (std::int64_t b = 0; b < to_extents[1]; ++b)
        for (std::int64_t c = 0; c < to_extents[2]; ++c)
          for (std::int64_t d = 0; d < to_extents[3]; ++d)
            EXPECT_EQ(to.as<std::int32_t>()[at++], a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3]);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Movement, BroadcastStridesFollowNumpy) {
  EXPECT_EQ(broadcast_strides(std::vector<std::int64_t>{3}, std::vector<std::int64_t>{2, 3}),
            (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(broadcast_strides(std::vector<std::int64_t>{2, 1}, std::vector<std::int64_t>{2, 3}),
            (std::vector<std::int64_t>{1, 0}));
  EXPECT_THROW(broadcast_strides(std::vector<std::int64_t>{2}, std::vector<std::int64_t>{3}), RunFault);
  EXPECT_THROW(broadcast_strides(std::vector<std::int64_t>{1, 1}, std::vector<std::int64_t>{3}), RunFault);
}

TEST(Movement, StacksAndSlicesUndoEachOther) {
  Memory memory(1 << 20);
  const HostTensor whole = counted({2, 3, 2}, memory);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    std::vector<HostTensor> slices;
    for (std::int64_t i = 0; i < whole.extent(axis); ++i) slices.push_back(slice_of(whole, axis, i, memory));
    EXPECT_EQ(elements_of(stacked(slices, axis, memory)), elements_of(whole)) << axis;
  }
  const HostTensor parts[] = {counted({2}, memory), counted({3}, memory)};
  EXPECT_THROW(stacked(parts, 0, memory), RunFault);
}

}  // namespace
}  // namespace tensorlint::runtime

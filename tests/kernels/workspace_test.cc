// One workspace for calls of different shapes and kinds, as an executor with one arena has it: what a call leaves in it
// must mean nothing to the next.

#include <algorithm>
#include <functional>

#include "kernels/loss/loss.h"
#include "kernels/reduction/reduction.h"
#include "tests/kernels/testing.h"

namespace tensorlint::kernels {
namespace {

using testing::Access;
using testing::Buffer;

void fill_ordinary(Buffer<float>& data) {
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i * 7919 % 1009) * 0.01F - 5.0F;
}

/// Runs in a workspace of `bytes`; returns the results.
using Call = std::function<std::vector<float>(void* workspace, std::size_t bytes)>;
struct NamedCall {
  const char* name;
  std::size_t bytes;  // what its query asks for
  Call run;
};

NamedCall reduction(const char* name, ReductionKind kind, std::vector<std::int64_t> extents, std::vector<int> axes) {
  std::int64_t total = 1, results = 1;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    total *= extents[i];
    if (std::find(axes.begin(), axes.end(), static_cast<int>(i)) == axes.end()) results *= extents[i];
  }
  const auto request_of = [kind](const std::vector<std::int64_t>& e, const std::vector<int>& a) {
    Reduction request;
    request.kind = kind;
    request.result_dtype = kind == ReductionKind::kArgMax ? Dtype::kInt32 : Dtype::kFloat32;
    request.extents = e.data();
    request.rank = static_cast<int>(e.size());
    request.axes = a.data();
    request.axis_count = static_cast<int>(a.size());
    return request;
  };
  std::size_t bytes = 0;
  EXPECT_EQ(reduction_workspace(request_of(extents, axes), &bytes), Status::kOk);
  EXPECT_GT(bytes, 0U) << name << " is meant to combine blocks";
  return {name, bytes, [=](void* workspace, std::size_t room) {
            Buffer<float> input(static_cast<std::size_t>(total), Access::kReadOnly, "input");
            fill_ordinary(input);
            Buffer<float> result(static_cast<std::size_t>(results), Access::kWriteFirst, "result");
            for (std::size_t i = 0; i < result.size(); ++i) result[i] = -1.0F;
            EXPECT_EQ(reduce(request_of(extents, axes), input.data(), result.data(), workspace, room, nullptr),
                      Status::kOk);
            EXPECT_TRUE(testing::clean());
            return std::vector<float>(result.data(), result.data() + result.size());
          }};
}

NamedCall pointwise(const char* name, std::int64_t elements) {
  PointwiseLoss request;
  request.averaging = Averaging::kSum;
  request.elements = elements;
  std::size_t bytes = 0;
  EXPECT_EQ(pointwise_loss_workspace(request, &bytes), Status::kOk);
  EXPECT_GT(bytes, 0U);
  return {name, bytes, [=](void* workspace, std::size_t room) {
            const auto count = static_cast<std::size_t>(elements);
            Buffer<float> x(count, Access::kReadOnly, "x"), t(count, Access::kReadOnly, "t");
            fill_ordinary(x);
            for (std::size_t i = 0; i < count; ++i) t[i] = 0.5F;
            Buffer<float> total(1, Access::kWriteFirst, "total");
            PointwiseLoss call = request;
            call.input = x.data();
            call.target = t.data();
            call.total = total.data();
            EXPECT_EQ(pointwise_loss(call, workspace, room, nullptr), Status::kOk);
            EXPECT_TRUE(testing::clean());
            return std::vector<float>{total[0]};
          }};
}

NamedCall cross_entropy(const char* name, std::int64_t rows, std::int64_t classes, std::int64_t inner) {
  ClassLoss request;
  request.rows = rows;
  request.classes = classes;
  request.inner = inner;
  std::size_t bytes = 0;
  EXPECT_EQ(class_loss_workspace(request, &bytes), Status::kOk);
  return {name, bytes, [=](void* workspace, std::size_t room) {
            const auto positions = static_cast<std::size_t>(rows * inner);
            Buffer<float> logits(positions * static_cast<std::size_t>(classes), Access::kReadOnly, "logits");
            fill_ordinary(logits);
            Buffer<std::int64_t> labels(positions, Access::kReadOnly, "labels");
            for (std::size_t i = 0; i < positions; ++i) labels[i] = static_cast<std::int64_t>(i) % classes;
            Buffer<float> total(1, Access::kWriteFirst, "total");
            ClassLoss call = request;
            call.logits = logits.data();
            call.labels = labels.data();
            call.total = total.data();
            EXPECT_EQ(class_loss(call, workspace, room, nullptr), Status::kOk);
            EXPECT_TRUE(testing::clean());
            return std::vector<float>{total[0]};
          }};
}

NamedCall cosine(const char* name, std::int64_t rows, std::int64_t length) {
  CosineLoss request;
  request.rows = rows;
  request.length = length;
  std::size_t bytes = 0;
  EXPECT_EQ(cosine_loss_workspace(request, &bytes), Status::kOk);
  EXPECT_GT(bytes, 0U);
  return {name, bytes, [=](void* workspace, std::size_t room) {
            const auto count = static_cast<std::size_t>(rows * length);
            Buffer<float> a(count, Access::kReadOnly, "a"), b(count, Access::kReadOnly, "b");
            Buffer<float> target(static_cast<std::size_t>(rows), Access::kReadOnly, "target");
            fill_ordinary(a);
            for (std::size_t i = 0; i < count; ++i) b[i] = static_cast<float>(i % 7) - 2.0F;
            for (std::size_t i = 0; i < target.size(); ++i) target[i] = 1.0F;
            Buffer<float> total(1, Access::kWriteFirst, "total");
            CosineLoss call = request;
            call.first = a.data();
            call.second = b.data();
            call.target = target.data();
            call.total = total.data();
            EXPECT_EQ(cosine_loss(call, workspace, room, nullptr), Status::kOk);
            EXPECT_TRUE(testing::clean());
            return std::vector<float>{total[0]};
          }};
}

std::vector<NamedCall> calls() {
  return {reduction("one row in splits", ReductionKind::kSum, {33000}, {0}),
          reduction("3 rows in splits", ReductionKind::kSum, {3, 20000}, {1}),
          reduction("8 rows in splits", ReductionKind::kSum, {8, 16400}, {1}),
          reduction("argmax of 5 rows in splits", ReductionKind::kArgMax, {5, 16500}, {1}),
          reduction("columns in splits", ReductionKind::kSum, {4300, 8}, {0}),
          reduction("6 sets of columns in splits", ReductionKind::kSum, {6, 4200, 8}, {1}),
          pointwise("squared loss over blocks", 70000),
          cross_entropy("cross entropy over blocks", 300, 24, 1),
          cross_entropy("cross entropy of columns", 2, 5, 300),
          cosine("cosine over blocks", 40, 60)};
}

TEST(Workspace, AnyPairOfCallsSharesOne) {
  const std::vector<NamedCall> all = calls();
  std::size_t bytes = 0;
  for (const NamedCall& call : all) bytes = std::max(bytes, call.bytes);
  std::vector<std::vector<float>> alone;
  testing::use({});
  for (const NamedCall& call : all) {
    Buffer<std::uint32_t> workspace(call.bytes / 4, Access::kWriteFirst, "workspace");
    ASSERT_EQ(initialize_loss_workspace(workspace.data(), call.bytes, nullptr), Status::kOk);
    alone.push_back(call.run(workspace.data(), call.bytes));
    ASSERT_TRUE(testing::clean()) << call.name;
  }
  int turn = 0;
  for (std::size_t first = 0; first < all.size(); ++first) {
    for (std::size_t second = 0; second < all.size(); ++second) {
      Buffer<std::uint32_t> workspace(bytes / 4, Access::kWriteFirst, "workspace");
      testing::use(testing::schedules(3)[static_cast<std::size_t>(turn++ % 3)]);
      ASSERT_EQ(initialize_reduction_workspace(workspace.data(), bytes, nullptr), Status::kOk);
      all[first].run(workspace.data(), bytes);
      ASSERT_EQ(all[second].run(workspace.data(), bytes), alone[second])
          << all[second].name << " after " << all[first].name;
      ASSERT_TRUE(testing::clean()) << all[second].name << " after " << all[first].name;
    }
  }
}

// Every query either asks for nothing or for more than the tickets, so that initialising a workspace of that size is
// enough for whatever follows in it.
TEST(Workspace, HoldsTheTicketsOrIsNotAskedFor) {
  testing::use({});
  for (const NamedCall& call : calls()) {
    Buffer<std::uint32_t> workspace(call.bytes / 4, Access::kWriteFirst, "workspace");
    ASSERT_EQ(initialize_loss_workspace(workspace.data(), call.bytes, nullptr), Status::kOk);
    ASSERT_TRUE(testing::clean()) << call.name;
  }
  EXPECT_EQ(initialize_loss_workspace(nullptr, 0, nullptr), Status::kOk);
  EXPECT_EQ(initialize_reduction_workspace(nullptr, 16, nullptr), Status::kNullPointer);
}

}  // namespace
}  // namespace tensorlint::kernels

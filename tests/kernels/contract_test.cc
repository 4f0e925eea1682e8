// What calls take and refuse beside ordinary operands: outputs over operands, partial overlaps, devices of less than
// the most.

#include <algorithm>
#include <functional>

#include "kernels/attention/attention.h"
#include "kernels/loss/dispatch.h"
#include "kernels/loss/loss.h"
#include "kernels/reduction/reduction.h"
#include "tests/kernels/testing.h"

namespace tensorlint::kernels {
namespace {

using testing::Access;
using testing::Buffer;

template <typename T>
void fill_ordinary(Buffer<T>& buffer, unsigned step) {
  for (std::size_t i = 0; i < buffer.size(); ++i)
    buffer[i] = testing::element_from<T>(static_cast<double>(i * step % 1009) / 128 - 4);
}

template <typename T>
std::vector<double> values(Buffer<T>& buffer) {
  std::vector<double> all;
  for (std::size_t i = 0; i < buffer.size(); ++i) all.push_back(testing::value_of(buffer[i]));
  return all;
}

template <typename T>
class InPlace : public ::testing::Test {};
using LossTypes = ::testing::Types<double, float, Half, BFloat16>;
TYPED_TEST_SUITE(InPlace, LossTypes);

struct ClassShape {
  std::int64_t rows, classes, inner;
  ClassLossKind kind = ClassLossKind::kCrossEntropy;
  double smoothing = 0;
};

// The gradient over the logits, or over the probabilities, has the bits that it has elsewhere: in lanes, blocks,
// clusters and columns of both widths, whatever thread comes first.
TYPED_TEST(InPlace, ClassLossGradient) {
  using T = TypeParam;
  const std::int64_t clustered = static_cast<std::int64_t>(kPartBytes / sizeof(T)) + 3;
  const ClassShape shapes[] = {{20, 24, 1},
                               {9, 13, 1},
                               {3, 2100, 1},
                               {2, clustered, 1},
                               {2, 11, 7},
                               {2, 40, 32},
                               {5, 40, 1, ClassLossKind::kCrossEntropy, 0.1},
                               {5, 40, 1, ClassLossKind::kCrossEntropyProbabilities},
                               {2, 1100, 1, ClassLossKind::kCrossEntropyProbabilities},
                               {2, 11, 16, ClassLossKind::kCrossEntropyProbabilities}};
  for (const ClassShape& shape : shapes) {
    const auto positions = static_cast<std::size_t>(shape.rows * shape.inner);
    const auto elements = positions * static_cast<std::size_t>(shape.classes);
    const bool soft = shape.kind == ClassLossKind::kCrossEntropyProbabilities;
    const auto run = [&](int over, const testing::Schedule& schedule) {  // 0: logits, 1: probabilities, 2: elsewhere
      Buffer<T> logits(elements, over == 0 ? Access::kReadWrite : Access::kReadOnly, "logits");
      Buffer<T> probabilities(soft ? elements : 0, over == 1 ? Access::kReadWrite : Access::kReadOnly, "probabilities");
      Buffer<T> elsewhere(elements, Access::kWriteFirst, "gradient"), total(1, Access::kWriteFirst, "total");
      Buffer<std::int64_t> labels(positions, Access::kReadOnly, "labels");
      fill_ordinary(logits, 37);
      for (std::size_t i = 0; i < probabilities.size(); ++i)
        probabilities[i] = testing::element_from<T>(static_cast<double>(i % 5) / 8);
      for (std::size_t i = 0; i < positions; ++i)
        labels[i] = i % 7 == 3 ? -100 : static_cast<std::int64_t>(i * 19) % shape.classes;
      ClassLoss request;
      request.kind = shape.kind;
      request.dtype = Traits<T>::kDtype;
      request.rows = shape.rows;
      request.classes = shape.classes;
      request.inner = shape.inner;
      request.smoothing = shape.smoothing;
      request.logits = logits.data();
      request.probabilities = probabilities.data();
      request.labels = labels.data();
      request.total = total.data();
      Buffer<T>& gradient = over == 0 ? logits : over == 1 ? probabilities : elsewhere;
      request.gradient = gradient.data();
      std::size_t bytes = 0;
      EXPECT_EQ(class_loss_workspace(request, &bytes), Status::kOk);
      Buffer<std::uint32_t> workspace(bytes / 4, Access::kWriteFirst, "workspace");
      testing::use(schedule);
      EXPECT_EQ(initialize_loss_workspace(workspace.data(), bytes, nullptr), Status::kOk);
      EXPECT_EQ(class_loss(request, workspace.data(), bytes, nullptr), Status::kOk);
      EXPECT_TRUE(testing::clean()) << shape.rows << "x" << shape.classes << "x" << shape.inner;
      std::vector<double> all = values(gradient);
      all.push_back(testing::value_of(total[0]));
      return all;
    };
    const std::vector<double> want = run(2, {});
    for (const testing::Schedule& schedule : testing::schedules(5)) {
      ASSERT_EQ(run(0, schedule), want) << shape.rows << "x" << shape.classes << "x" << shape.inner;
      if (soft) {
        ASSERT_EQ(run(1, schedule), want) << shape.rows << "x" << shape.classes << "x" << shape.inner;
      }
    }
  }
}

// Tensors may begin at any element: results have the bits that they have at a 16-byte boundary. Lengths that are read
// four vectors at a time, that end in the middle of one, and that are cut into splits.
TYPED_TEST(InPlace, SameBitsAtEveryAddress) {
  using T = TypeParam;
  constexpr std::int64_t kSize = Vector<T>::kSize;
  struct Shape {
    std::vector<std::int64_t> extents;
    std::vector<int> axes;
  };
  const Shape shapes[] = {{{13, 33 * kSize + 1}, {1}},   {{2, 2200 * kSize + 3}, {1}},      {{6000 * kSize + 1}, {0}},
                          {{40, 2, 11 * kSize}, {0, 2}}, {{40, 3, 11 * kSize - 1}, {0, 2}}, {{900, 2 * kSize}, {0}}};
  for (const ReductionKind kind : {ReductionKind::kSum, ReductionKind::kLogSumExp, ReductionKind::kArgMin}) {
    for (const Shape& shape : shapes) {
      std::int64_t total = 1, results = 1;
      for (std::size_t i = 0; i < shape.extents.size(); ++i) {
        total *= shape.extents[i];
        if (std::find(shape.axes.begin(), shape.axes.end(), static_cast<int>(i)) == shape.axes.end())
          results *= shape.extents[i];
      }
      Reduction request;
      request.kind = kind;
      request.dtype = Traits<T>::kDtype;
      request.result_dtype = kind == ReductionKind::kArgMin ? Dtype::kInt64 : Dtype::kFloat64;
      request.extents = shape.extents.data();
      request.rank = static_cast<int>(shape.extents.size());
      request.axes = shape.axes.data();
      request.axis_count = static_cast<int>(shape.axes.size());
      const auto run = [&](std::size_t shift) {
        Buffer<T> input(static_cast<std::size_t>(total), Access::kReadOnly, "input", shift);
        fill_ordinary(input, 37);
        Buffer<std::uint64_t> result(static_cast<std::size_t>(results), Access::kWriteFirst, "result");
        std::size_t bytes = 0;
        EXPECT_EQ(reduction_workspace(request, &bytes), Status::kOk);
        Buffer<std::uint32_t> workspace(bytes / 4, Access::kWriteFirst, "workspace");
        testing::use({});
        EXPECT_EQ(initialize_reduction_workspace(workspace.data(), bytes, nullptr), Status::kOk);
        EXPECT_EQ(reduce(request, input.data(), result.data(), workspace.data(), bytes, nullptr), Status::kOk);
        EXPECT_TRUE(testing::clean()) << "shift " << shift;
        return std::vector<std::uint64_t>(result.data(), result.data() + results);
      };
      const std::vector<std::uint64_t> want = run(0);
      for (std::size_t shift = 1; shift < static_cast<std::size_t>(kSize); ++shift)
        ASSERT_EQ(run(shift), want) << "kind " << static_cast<int>(kind) << " of " << total << ", shift " << shift;
    }
  }

  const std::int64_t clustered = static_cast<std::int64_t>(kPartBytes / sizeof(T)) * 2 - 5;
  const ClassShape classes[] = {{9, 13, 1},
                                {5, 17 * kSize + 1, 1},
                                {2, 1100 * kSize + 3, 1},
                                {2, clustered, 1},
                                {2112, 129 * kSize + 1, 1},  // a warp a row
                                {2, 300 * kSize + 1, 1, ClassLossKind::kCrossEntropy, 0.1},
                                {3, 300 * kSize + 1, 1, ClassLossKind::kCrossEntropyProbabilities}};
  for (const ClassShape& shape : classes) {
    const auto elements = static_cast<std::size_t>(shape.rows * shape.classes);
    const bool soft = shape.kind == ClassLossKind::kCrossEntropyProbabilities;
    const auto run = [&](std::size_t from, std::size_t to) {
      Buffer<T> logits(elements, Access::kReadOnly, "logits", from);
      Buffer<T> probabilities(soft ? elements : 0, Access::kReadOnly, "probabilities", to);
      Buffer<T> gradient(elements, Access::kWriteFirst, "gradient", to), total(1, Access::kWriteFirst, "total");
      Buffer<std::int64_t> labels(static_cast<std::size_t>(shape.rows), Access::kReadOnly, "labels");
      fill_ordinary(logits, 37);
      for (std::size_t i = 0; i < probabilities.size(); ++i)
        probabilities[i] = testing::element_from<T>(static_cast<double>(i % 5) / 8);
      for (std::size_t i = 0; i < labels.size(); ++i)  // the first and the last class, too, and skipped rows
        labels[i] = i % 7 == 3   ? -100
                    : i % 3 == 0 ? shape.classes - 1 - static_cast<std::int64_t>(i) % 4
                                 : static_cast<std::int64_t>(i * 19) % shape.classes;
      ClassLoss request;
      request.kind = shape.kind;
      request.dtype = Traits<T>::kDtype;
      request.rows = shape.rows;
      request.classes = shape.classes;
      request.smoothing = shape.smoothing;
      request.logits = logits.data();
      request.probabilities = probabilities.data();
      request.labels = labels.data();
      request.total = total.data();
      request.gradient = gradient.data();
      std::size_t bytes = 0;
      EXPECT_EQ(class_loss_workspace(request, &bytes), Status::kOk);
      Buffer<std::uint32_t> workspace(bytes / 4, Access::kWriteFirst, "workspace");
      testing::use({});
      EXPECT_EQ(initialize_loss_workspace(workspace.data(), bytes, nullptr), Status::kOk);
      EXPECT_EQ(class_loss(request, workspace.data(), bytes, nullptr), Status::kOk);
      EXPECT_TRUE(testing::clean()) << shape.rows << "x" << shape.classes << ", shifts " << from << " " << to;
      std::vector<double> all = values(gradient);
      all.push_back(testing::value_of(total[0]));
      return all;
    };
    const std::vector<double> want = run(0, 0);
    const std::size_t last = static_cast<std::size_t>(kSize) - 1;
    ASSERT_EQ(run(1, 1), want) << shape.rows << "x" << shape.classes;
    if (shape.rows > 1000) continue;  // once is enough
    ASSERT_EQ(run(0, last), want) << shape.rows << "x" << shape.classes;
    ASSERT_EQ(run(last, 0), want) << shape.rows << "x" << shape.classes;
    ASSERT_EQ(run(last, 1), want) << shape.rows << "x" << shape.classes;
  }
}

TYPED_TEST(InPlace, SoftmaxAndItsGradient) {
  using T = TypeParam;
  const std::int64_t clustered = static_cast<std::int64_t>(kPartBytes / sizeof(T)) + 3;
  const ClassShape shapes[] = {{9, 13, 1}, {2, 1100, 1}, {2, clustered, 1}, {2, 11, 7}, {2, 40, 32}};
  for (const ClassShape& shape : shapes) {
    const auto elements = static_cast<std::size_t>(shape.rows * shape.classes * shape.inner);
    const auto run = [&](int over, bool gradient, const testing::Schedule& schedule) {
      Buffer<T> input(elements, over == 0 ? Access::kReadWrite : Access::kReadOnly, "input");
      Buffer<T> upstream(elements, over == 1 ? Access::kReadWrite : Access::kReadOnly, "upstream");
      Buffer<T> elsewhere(elements, Access::kWriteFirst, "output");
      fill_ordinary(input, 37);
      fill_ordinary(upstream, 53);
      Softmax request;
      request.dtype = Traits<T>::kDtype;
      request.logarithmic = shape.classes % 2 == 0;
      request.rows = shape.rows;
      request.classes = shape.classes;
      request.inner = shape.inner;
      request.input = input.data();
      if (gradient) request.upstream = upstream.data();
      Buffer<T>& output = over == 0 ? input : over == 1 ? upstream : elsewhere;
      request.output = output.data();
      testing::use(schedule);
      EXPECT_EQ(softmax(request, nullptr), Status::kOk);
      EXPECT_TRUE(testing::clean());
      return values(output);
    };
    for (const bool gradient : {false, true}) {
      const std::vector<double> want = run(2, gradient, {});
      for (const testing::Schedule& schedule : testing::schedules(3)) {
        ASSERT_EQ(run(0, gradient, schedule), want);
        if (gradient) {
          ASSERT_EQ(run(1, gradient, schedule), want);
        }
      }
    }
  }
}

TYPED_TEST(InPlace, PointwiseAndCosineGradients) {
  using T = TypeParam;
  for (const std::int64_t n : {7, 1030, 9000}) {
    const auto count = static_cast<std::size_t>(n);
    const auto run = [&](int over) {  // 0: input, 1: target, 2: upstream, 3: elsewhere
      Buffer<T> x(count, over == 0 ? Access::kReadWrite : Access::kReadOnly, "x");
      Buffer<T> t(count, over == 1 ? Access::kReadWrite : Access::kReadOnly, "t");
      Buffer<T> upstream(count, over == 2 ? Access::kReadWrite : Access::kReadOnly, "upstream");
      Buffer<T> elsewhere(count, Access::kWriteFirst, "gradient"), losses(count, Access::kWriteFirst, "losses");
      fill_ordinary(x, 37);
      fill_ordinary(t, 53);
      fill_ordinary(upstream, 71);
      PointwiseLoss request;
      request.dtype = Traits<T>::kDtype;
      request.averaging = Averaging::kNone;
      request.elements = n;
      request.input = x.data();
      request.target = t.data();
      request.upstream = upstream.data();
      request.losses = losses.data();
      Buffer<T>& gradient = over == 0 ? x : over == 1 ? t : over == 2 ? upstream : elsewhere;
      request.gradient = gradient.data();
      testing::use({testing::Order::kRandom, 3});
      EXPECT_EQ(pointwise_loss(request, nullptr, 0, nullptr), Status::kOk);
      EXPECT_TRUE(testing::clean());
      std::vector<double> all = values(gradient), each = values(losses);
      all.insert(all.end(), each.begin(), each.end());
      return all;
    };
    const std::vector<double> want = run(3);
    for (const int over : {0, 1, 2}) ASSERT_EQ(run(over), want) << over;
  }
  for (const std::int64_t length : {5, 64, 700}) {
    const auto count = static_cast<std::size_t>(4 * length);
    const auto run = [&](bool in_place) {
      Buffer<T> a(count, Access::kReadWrite, "a"), b(count, Access::kReadWrite, "b");
      Buffer<T> da(count, Access::kWriteFirst, "da"), db(count, Access::kWriteFirst, "db");
      Buffer<T> target(4, Access::kReadOnly, "target"), losses(4, Access::kWriteFirst, "losses");
      fill_ordinary(a, 37);
      fill_ordinary(b, 53);
      for (std::size_t i = 0; i < 4; ++i) target[i] = testing::element_from<T>(i % 2 == 0 ? 1 : -1);
      CosineLoss request;
      request.dtype = Traits<T>::kDtype;
      request.averaging = Averaging::kNone;
      request.rows = 4;
      request.length = length;
      request.first = a.data();
      request.second = b.data();
      request.target = target.data();
      request.losses = losses.data();
      request.first_gradient = (in_place ? a : da).data();
      request.second_gradient = (in_place ? b : db).data();
      testing::use({testing::Order::kRandom, 3});
      EXPECT_EQ(cosine_loss(request, nullptr, 0, nullptr), Status::kOk);
      EXPECT_TRUE(testing::clean());
      std::vector<double> all = values(in_place ? a : da), second = values(in_place ? b : db);
      all.insert(all.end(), second.begin(), second.end());
      return all;
    };
    ASSERT_EQ(run(true), run(false)) << length;
  }
}

// One step beside an exact match, over the whole of anything else, into a label or a workspace: refused before anything
// is launched.
TEST(Overlap, IsRefused) {
  Buffer<float> memory(4096, Access::kReadWrite, "memory");
  Buffer<float> other(64, Access::kReadWrite, "other");
  Buffer<std::int64_t> labels(4, Access::kReadOnly, "labels");
  Buffer<std::uint32_t> workspace(16384, Access::kReadWrite, "workspace");
  float* const base = memory.data();
  ClassLoss request;
  request.rows = 4;
  request.classes = 8;
  request.logits = base;
  request.labels = labels.data();
  request.total = other.data();
  std::size_t bytes = 0;
  ASSERT_EQ(class_loss_workspace(request, &bytes), Status::kOk);
  ASSERT_LE(bytes, workspace.size() * 4);
  const auto run = [&] {
    testing::use({});
    return Status::Code(class_loss(request, workspace.data(), bytes, nullptr));
  };
  request.gradient = base + 4;
  EXPECT_EQ(run(), Status::kOverlap);
  request.gradient = base;
  request.total = base + 31;  // the last logit
  EXPECT_EQ(run(), Status::kOverlap);
  request.total = base + 32;
  request.gradient = workspace.data();
  EXPECT_EQ(run(), Status::kOverlap);
  request.gradient = labels.data();
  EXPECT_EQ(run(), Status::kOverlap);
  request.gradient = base;
  request.kind = ClassLossKind::kNegativeLogLikelihood;  // reads at labels what other threads write
  EXPECT_EQ(run(), Status::kOverlap);

  Softmax half;
  half.rows = 2;
  half.classes = 8;
  half.input = base;
  half.output = base + 8;
  EXPECT_EQ(softmax(half, nullptr), Status::kOverlap);

  PointwiseLoss pointwise;
  pointwise.averaging = Averaging::kNone;
  pointwise.elements = 16;
  pointwise.input = base;
  pointwise.target = base + 16;
  pointwise.losses = base;  // read again for the gradient of the next thread's elements? not in a way that is promised
  EXPECT_EQ(pointwise_loss(pointwise, nullptr, 0, nullptr), Status::kOverlap);
  pointwise.losses = base + 32;
  pointwise.gradient = base + 32;
  EXPECT_EQ(pointwise_loss(pointwise, nullptr, 0, nullptr), Status::kOverlap);
  pointwise.gradient = base + 64;
  pointwise.weight = base + 63;
  pointwise.weight_period = 2;
  EXPECT_EQ(pointwise_loss(pointwise, nullptr, 0, nullptr), Status::kOverlap);

  const std::int64_t extents[] = {4, 4};
  const int axis = 1;
  Reduction reduction;
  reduction.extents = extents;
  reduction.rank = 2;
  reduction.axes = &axis;
  reduction.axis_count = 1;
  EXPECT_EQ(reduce(reduction, base, base + 12, nullptr, 0, nullptr), Status::kOverlap);
  EXPECT_EQ(reduce(reduction, base, base + 16, nullptr, 0, nullptr), Status::kOk);
  EXPECT_TRUE(testing::clean());
}

TEST(Status, KeepsTheErrorOfTheDevice) {
  const Status failed = Status::launch_failed(701);
  EXPECT_EQ(failed, Status::kLaunchFailed);
  EXPECT_EQ(failed.device_error(), 701);
  EXPECT_EQ(Status(Status::kOk).device_error(), 0);
  EXPECT_STREQ(describe(failed), "kernel launch failed");
  for (int code = 0; code <= Status::kOverlap; ++code)
    EXPECT_STRNE(describe(static_cast<Status::Code>(code)), "unknown status");
}

// Rows whose cached part leaves no room for the kernel's static shared memory below 48 KiB: these class counts failed
// to launch, 49152 (a vocabulary) among them.
TEST(SharedMemory, CountsTheStaticPart) {
  using T = BFloat16;
  for (const std::int64_t classes : {24460, 24465, 24576, 24577, 48929, 49152, 49153}) {
    Buffer<T> logits(static_cast<std::size_t>(classes), Access::kReadOnly, "logits");
    Buffer<T> output(static_cast<std::size_t>(classes), Access::kWriteFirst, "output");
    fill_ordinary(logits, 37);
    Softmax request;
    request.dtype = Dtype::kBFloat16;
    request.rows = 1;
    request.classes = classes;
    request.input = logits.data();
    request.output = output.data();
    testing::use({});
    ASSERT_EQ(softmax(request, nullptr), Status::kOk) << classes;
    ASSERT_TRUE(testing::clean()) << classes;
  }
}

#if !defined(__CUDACC__)

struct OnDevice {
  explicit OnDevice(const emulator::Device& device) { emulator::use_device(device); }
  ~OnDevice() { emulator::use_device({}); }
};

Status softmax_of(std::int64_t classes, int capability) {
  Buffer<float> logits(static_cast<std::size_t>(classes), Access::kReadOnly, "logits");
  Buffer<float> output(static_cast<std::size_t>(classes), Access::kWriteFirst, "output");
  fill_ordinary(logits, 37);
  Softmax request;
  request.rows = 1;
  request.classes = classes;
  request.input = logits.data();
  request.output = output.data();
  request.capability = capability;
  testing::use({});
  return softmax(request, nullptr);
}

// More than one block's part: a cluster where there are some. The device is asked, not assumed.
TEST(Capability, IsTheDevicesOwn) {
  {
    const OnDevice scope(emulator::device_of_sm_80());
    EXPECT_EQ(softmax_of(40000, 0), Status::kOk);
    EXPECT_TRUE(testing::clean());
    const Status forced = softmax_of(40000, 90);
    EXPECT_EQ(forced, Status::kLaunchFailed);
    EXPECT_EQ(forced.device_error(), emulator::kInvalidClusterSize);
  }
  EXPECT_EQ(softmax_of(40000, 0), Status::kOk);
  EXPECT_TRUE(testing::clean());
}

/// Of one query and key, with room for the widest.
Status attention_of(std::int64_t width, std::int64_t value_width, std::size_t* shared_bytes) {
  Buffer<float> query(256, Access::kReadOnly, "query"), key(256, Access::kReadOnly, "key"),
      value(256, Access::kReadOnly, "value"), result(256, Access::kWriteFirst, "result");
  for (Buffer<float>* const operand : {&query, &key, &value})
    for (std::size_t i = 0; i < operand->size(); ++i) (*operand)[i] = static_cast<float>(i % 5);
  Attention request;
  request.queries = request.keys = 1;
  request.width = width;
  request.value_width = value_width;
  request.query = {query.data(), width, 1, {}};
  request.key = {key.data(), width, 1, {}};
  request.value = {value.data(), value_width, 1, {}};
  request.result = result.data();
  request.result_row = value_width;
  *shared_bytes = attention_shared_bytes(width, value_width);
  testing::use({});
  return attention(request, nullptr);
}

// What a device lacks for a kernel is known before the launch.
TEST(Capability, AttentionFitsTheDeviceAsItSays) {
  for (const emulator::Device& device :
       {emulator::Device{}, emulator::device_of_sm_80(), emulator::device_of_sm_86()}) {
    const OnDevice scope(device);
    std::size_t most = 0;
    ASSERT_EQ(device_shared_memory(&most), Status::kOk);
    EXPECT_EQ(most, device.shared_bytes_most);
    int refused = 0;
    for (const std::int64_t width : {64, 128, 192, 256}) {
      for (const std::int64_t value_width : {64, 128, 256}) {
        std::size_t needed = 0;
        const Status status = attention_of(width, value_width, &needed);
        EXPECT_EQ(status, needed <= most ? Status::kOk : Status::kLaunchFailed) << width << ", " << value_width;
        EXPECT_TRUE(needed > most || testing::clean());
        refused += needed > most ? 1 : 0;
      }
    }
    EXPECT_EQ(refused, device.capability == 86 ? 8 : 0);
  }
}

TEST(Capability, TooLittleSharedMemoryIsAnError) {
  emulator::Device small;
  small.shared_bytes_most = 48 * 1024;
  const OnDevice scope(small);
  EXPECT_EQ(softmax_of(8000, 0), Status::kOk);
  const Status status = softmax_of(16000, 0);
  EXPECT_EQ(status, Status::kLaunchFailed);
  EXPECT_EQ(status.device_error(), emulator::kInvalidValue);
}

#endif

}  // namespace
}  // namespace tensorlint::kernels

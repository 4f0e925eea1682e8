// The shapes of docs/kernels-traffic.md on the emulator, at their full size: a sample of each launch's blocks runs over
// memory that is reserved but not there (reads are zeros), and the sectors that they move are scaled to all blocks.
// Prints one line of JSON a shape. kernels/model/traffic.py makes the tables.

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/emulator/simt.h"
#include "kernels/loss/loss.h"
#include "kernels/loss/plan.h"
#include "kernels/movement/movement.h"
#include "kernels/normalization/normalization.h"
#include "kernels/reduction/plan.h"
#include "kernels/reduction/reduction.h"

namespace {

using namespace tensorlint::kernels;

/// Device memory of a shape. Its addresses are aligned as cudaMalloc's are, and `shift` bytes more.
class Memory {
 public:
  explicit Memory(std::size_t bytes, std::size_t shift = 0) : bytes_(bytes + shift + 4096) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED) {
      std::fprintf(stderr, "shapes: mmap of %zu bytes failed\n", bytes_);
      std::exit(2);
    }
    data_ = static_cast<unsigned char*>(memory_) + shift;
    emulator::register_buffer(data_, bytes, 1, emulator::Access::kUntracked, "shape");
  }
  ~Memory() {
    emulator::unregister_buffer(data_);
    munmap(memory_, bytes_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  void* data() { return data_; }

 private:
  std::size_t bytes_;
  void* memory_;
  unsigned char* data_;
};

// A block reads alike everywhere but at the ends of rows and tensors. 52 at even distances are 4 of each kind where
// rows are cut into 13 splits, as in the batch norm below, and take seconds.
constexpr unsigned kSampledBlocks = 52;

void require(Status status, const char* what) {
  if (status == Status::kOk) return;
  std::fprintf(stderr, "shapes: %s: status %d\n", what, static_cast<int>(static_cast<Status::Code>(status)));
  std::exit(2);
}

/// What the model of time (predict.py) needs beside the counts: how it finds a shape's loops in the compiled kernel.
struct Walk {
  const char* loop;  // "aligned", "pitched", "shifted"; "none": the model has no such kernel
  unsigned lanes;    // threads of one row
  double rows;       // that they take one after the other
  double read_bytes;
  double written_bytes;
  double vectors = 0;  // of a row, by the thread that has most of them; 0: as many as each has
};

void report(const std::string& name, const char* kernel, const Walk& walk) {
  const emulator::Report& seen = emulator::report();
  if (!seen.clean()) {
    std::fprintf(stderr, "shapes: %s: %s\n", name.c_str(), seen.first.c_str());
    std::exit(2);
  }
  double load_requests = 0, load_sectors = 0, l2 = 0, store_requests = 0, stores = 0, atomics = 0;
  for (const emulator::LaunchTraffic& launch : seen.traffic) {
    const double scale = static_cast<double>(launch.blocks) / launch.blocks_run;
    load_requests += scale * static_cast<double>(launch.sectors.load_requests);
    load_sectors += scale * static_cast<double>(launch.sectors.load_sectors);
    l2 += scale * static_cast<double>(launch.sectors.l2_load_sectors);
    store_requests += scale * static_cast<double>(launch.sectors.store_requests);
    stores += scale * static_cast<double>(launch.sectors.store_sectors);
    atomics += scale * static_cast<double>(launch.sectors.atomic_sectors);
  }
  const emulator::LaunchTraffic& main = seen.traffic.back();
  const double floor_bytes = walk.read_bytes + walk.written_bytes;
  std::printf(
      "{\"name\": \"%s\", \"kernel\": \"%s\", \"floor_bytes\": %.0f, \"launches\": %zu, "
      "\"blocks\": %u, \"cluster\": %u, \"dynamic_shared\": %zu, \"load_requests\": %.0f, "
      "\"load_sectors\": %.0f, \"l2_load_sectors\": %.0f, \"store_requests\": %.0f, \"store_sectors\": %.0f, "
      "\"atomic_sectors\": %.0f, \"loop\": \"%s\", \"lanes\": %u, \"rows\": %.6g, \"vectors\": %.0f, \"read_bytes\": "
      "%.0f}\n",
      name.c_str(), kernel, floor_bytes, seen.traffic.size(), main.blocks, main.cluster, main.dynamic_shared_bytes,
      load_requests, load_sectors, l2, store_requests, stores, atomics, walk.loop, walk.lanes, walk.rows, walk.vectors,
      walk.read_bytes);
  std::fflush(stdout);
}

void begin() {
  emulator::use_device({});
  emulator::options() = {};
  emulator::options().sectors = true;
  emulator::options().sampled_blocks = kSampledBlocks;
  emulator::clear_report();
}

void reduction(const std::string& name, const char* kernel, const char* loop, ReductionKind kind, Dtype dtype,
               std::vector<std::int64_t> extents, std::vector<int> axes, std::size_t shift_elements = 0) {
  const std::int64_t total = std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
  std::int64_t results = total;
  for (const int axis : axes) results /= extents[static_cast<std::size_t>(axis)];
  Reduction request;
  request.kind = kind;
  request.dtype = dtype;
  const bool arg = kind == ReductionKind::kArgMax;
  request.result_dtype = arg ? Dtype::kInt64 : dtype == Dtype::kFloat8E4M3 ? Dtype::kFloat32 : dtype;
  request.extents = extents.data();
  request.rank = static_cast<int>(extents.size());
  request.axes = axes.data();
  request.axis_count = static_cast<int>(axes.size());
  const std::size_t input_bytes = static_cast<std::size_t>(total) * size_of(dtype);
  const std::size_t result_bytes = static_cast<std::size_t>(results) * size_of(request.result_dtype);
  std::size_t workspace_bytes = 0;
  require(reduction_workspace(request, &workspace_bytes), "reduction_workspace");
  Memory input(input_bytes, shift_elements * size_of(dtype)), result(result_bytes), workspace(workspace_bytes);
  begin();
  require(reduce(request, input.data(), result.data(), workspace.data(), workspace_bytes, nullptr), name.c_str());
  const std::size_t state_bytes = arg ? 16 : kind == ReductionKind::kLogSumExp ? 8 : 4;
  FoldedAxes folded;
  ReductionPlan plan;
  require(fold_axes(request.extents, request.rank, request.axes, request.axis_count, &folded), "fold_axes");
  require(plan_reduction(folded, static_cast<int>(16 / size_of(dtype)), state_bytes, !arg, &plan), "plan_reduction");
  const unsigned threads = plan.by_columns ? plan.depth : plan.lanes;
  // What fills no whole vector at the end of a row is loaded before them.
  const std::int64_t length =
      std::min(plan.split_length,
               plan.by_columns || folded.outer_reduced > 1
                   ? plan.split_length
                   : std::max<std::int64_t>(1, folded.inner * static_cast<std::int64_t>(size_of(dtype)) / 16));
  report(
      name, kernel,
      {loop, plan.by_columns ? 256U : plan.lanes, static_cast<double>(plan.rows_each), static_cast<double>(input_bytes),
       static_cast<double>(result_bytes), std::ceil(static_cast<double>(length) / threads)});
}

/// What the model needs of a kernel over rows of bf16 classes.
Walk class_walk(std::int64_t rows, std::int64_t classes, double read_bytes, double written_bytes) {
  ClassPlan plan;
  require(plan_class_rows(rows, classes, 8, true, 90, kPartBytes, &plan), "plan_class_rows");
  const double at_once = plan.blocks / plan.cluster * (256.0 / plan.lanes);
  return {classes % 8 == 0 ? "aligned" : "shifted", plan.lanes, static_cast<double>(rows) / at_once, read_bytes,
          written_bytes};
}

void cross_entropy(std::int64_t rows, std::int64_t classes) {
  const std::size_t bytes = static_cast<std::size_t>(rows * classes) * 2;
  Memory logits(bytes), gradient(bytes), labels(static_cast<std::size_t>(rows) * 8), total(2);
  ClassLoss request;
  request.dtype = Dtype::kBFloat16;
  request.rows = rows;
  request.classes = classes;
  request.logits = logits.data();
  request.labels = labels.data();
  request.total = total.data();
  request.gradient = gradient.data();
  std::size_t workspace_bytes = 0;
  require(class_loss_workspace(request, &workspace_bytes), "class_loss_workspace");
  Memory workspace(workspace_bytes);
  begin();
  const std::string name =
      "cross entropy, loss and gradient, bf16, " + std::to_string(rows) + " x " + std::to_string(classes);
  require(class_loss(request, workspace.data(), workspace_bytes, nullptr), name.c_str());
  report(name, "class_rows<ClassTask::kIndices, BFloat16>",
         class_walk(rows, classes, static_cast<double>(bytes) + 8.0 * static_cast<double>(rows),
                    static_cast<double>(bytes)));
}

void pointwise(const char* name, const char* kernel, PointwiseKind kind, std::int64_t elements) {
  const std::size_t bytes = static_cast<std::size_t>(elements) * 2;
  Memory input(bytes), target(bytes), gradient(bytes), total(2);
  PointwiseLoss request;
  request.kind = kind;
  request.dtype = Dtype::kBFloat16;
  request.elements = elements;
  request.input = input.data();
  request.target = target.data();
  request.total = total.data();
  request.gradient = gradient.data();
  std::size_t workspace_bytes = 0;
  require(pointwise_loss_workspace(request, &workspace_bytes), "pointwise_loss_workspace");
  Memory workspace(workspace_bytes);
  begin();
  require(pointwise_loss(request, workspace.data(), workspace_bytes, nullptr), name);
  report(name, kernel, {"aligned", 256, 1.0, 2.0 * static_cast<double>(bytes), static_cast<double>(bytes)});
}

void soft_maximum(const char* name, std::int64_t rows, std::int64_t classes) {
  const std::size_t bytes = static_cast<std::size_t>(rows * classes) * 2;
  Memory input(bytes), output(bytes);
  Softmax request;
  request.dtype = Dtype::kBFloat16;
  request.rows = rows;
  request.classes = classes;
  request.input = input.data();
  request.output = output.data();
  begin();
  require(softmax(request, nullptr), name);
  report(name, "class_rows<ClassTask::kSoftmax, BFloat16>",
         class_walk(rows, classes, static_cast<double>(bytes), static_cast<double>(bytes)));
}

/// Heads of one batch, queries and keys of one width; all contiguous.
void attend(const char* name, std::int64_t matrices, std::int64_t queries, std::int64_t keys, std::int64_t width) {
  const auto bytes = [&](std::int64_t rows) { return static_cast<std::size_t>(matrices * rows * width) * 2; };
  Memory query(bytes(queries)), key(bytes(keys)), value(bytes(keys)), result(bytes(queries));
  Attention request;
  request.dtype = Dtype::kBFloat16;
  request.queries = queries;
  request.keys = keys;
  request.width = request.value_width = width;
  request.batch_rank = 1;
  request.batch[0] = matrices;
  request.query = {query.data(), width, 1, {queries * width}};
  request.key = {key.data(), width, 1, {keys * width}};
  request.value = {value.data(), width, 1, {keys * width}};
  request.result = result.data();
  request.result_row = width;
  request.result_batch[0] = queries * width;
  begin();
  emulator::options().sampled_blocks = 2;  // each computes its products, and all are alike
  require(attention(request, nullptr), name);
  report(name, "attend_tiles",
         {"none", 0, 0, static_cast<double>(bytes(queries) + 2 * bytes(keys)), static_cast<double>(bytes(queries))});
}

/// Layer normalization with a scale and a bias for each element of a row.
void normalize(const char* name, std::int64_t rows, std::int64_t length) {
  const std::size_t bytes = static_cast<std::size_t>(rows * length) * 2,
                    row_bytes = static_cast<std::size_t>(length) * 2;
  Memory data(bytes), result(bytes), scale(row_bytes), bias(row_bytes);
  Normalization request;
  request.dtype = Dtype::kBFloat16;
  request.rows = rows;
  request.length = request.each = length;
  request.data = data.data();
  request.scale = scale.data();
  request.bias = bias.data();
  request.result = result.data();
  begin();
  require(normalization(request, nullptr), name);
  report(name, "normalize_rows<BFloat16>",
         {"none", 0, 0, static_cast<double>(bytes + 2 * row_bytes), static_cast<double>(bytes)});
}

/// `extents` of the result, `from_strides` of a source of as many elements; no strides: a fill.
void movement(const char* name, const char* kernel, int element_bytes, const std::vector<std::int64_t>& extents,
              const std::vector<std::int64_t>& from_strides) {
  Movement m;
  m.element_bytes = element_bytes;
  m.rank = static_cast<int>(extents.size());
  m.to.elements = 1;
  for (std::size_t axis = extents.size(); axis-- > 0;) {
    m.extents[axis] = extents[axis];
    m.to.strides[axis] = m.to.elements;
    m.to.elements *= extents[axis];
  }
  std::copy(from_strides.begin(), from_strides.end(), m.from.strides);
  const bool is_fill = from_strides.empty();
  if (is_fill) m.kind = MovementKind::kPad;
  m.from.elements = is_fill ? 0 : m.to.elements;
  const std::size_t bytes = static_cast<std::size_t>(m.to.elements * element_bytes);
  Memory source(is_fill ? 0 : bytes), destination(bytes);
  m.source = is_fill ? nullptr : source.data();
  m.destination = destination.data();
  begin();
  require(move(m, nullptr, 0, nullptr), name);
  report(name, kernel, {"none", 0, 0, is_fill ? 0.0 : static_cast<double>(bytes), static_cast<double>(bytes)});
}

}  // namespace

int main() {
  constexpr auto kSum = ReductionKind::kSum;
  constexpr auto kBFloat16 = Dtype::kBFloat16;
  const char* const rows = "reduce_rows<Sum<BFloat16, Term::kValue>>";
  const char* const columns = "reduce_columns<Sum<BFloat16, Term::kValue>>";
  constexpr std::int64_t kMebi = 1 << 20;
  reduction("sum, float32, all of 2^28", "reduce_rows<Sum<float, Term::kValue>>", "aligned", kSum, Dtype::kFloat32,
            {256 * kMebi}, {0});
  reduction("sum, bf16, all of 2^25", rows, "aligned", kSum, kBFloat16, {32 * kMebi}, {0});
  reduction("sum, e4m3, all of 2^26", "reduce_rows<Sum<Float8E4M3, Term::kValue>>", "aligned", kSum, Dtype::kFloat8E4M3,
            {64 * kMebi}, {0});
  reduction("log sum exp, bf16, all of 2^25", "reduce_rows<LogSumExp<BFloat16>>", "aligned", ReductionKind::kLogSumExp,
            kBFloat16, {32 * kMebi}, {0});
  reduction("argmax, bf16, all of 2^25", "reduce_rows<ArgExtreme<BFloat16>>", "aligned", ReductionKind::kArgMax,
            kBFloat16, {32 * kMebi}, {0});
  reduction("sum, bf16, rows of 131072 x 256", rows, "aligned", kSum, kBFloat16, {131072, 256}, {1});
  reduction("sum, bf16, rows of 16384 x 2048", rows, "aligned", kSum, kBFloat16, {16384, 2048}, {1});
  reduction("sum, bf16, rows of 4096 x 12288", rows, "aligned", kSum, kBFloat16, {4096, 12288}, {1});
  reduction("sum, bf16, rows of 8192 x 4097", rows, "shifted", kSum, kBFloat16, {8192, 4097}, {1});
  reduction("sum, bf16, all of 2^25 + 5, one element off alignment", rows, "shifted", kSum, kBFloat16, {32 * kMebi + 5},
            {0}, 1);
  reduction("sum, bf16, columns of 11184816 x 3", columns, "aligned", kSum, kBFloat16, {11184816, 3}, {0});
  reduction("sum, bf16, columns of 131072 x 256", columns, "aligned", kSum, kBFloat16, {131072, 256}, {0});
  reduction("sum, bf16, columns of 65536 x 513", columns, "shifted", kSum, kBFloat16, {65536, 513}, {0});
  reduction("sum, bf16, [256, 512, 3136] over 0 and 2", rows, "pitched", kSum, kBFloat16, {256, 512, 3136}, {0, 2});
  reduction("sum, bf16, [2048, 512, 49] over 0 and 2", columns, "aligned", kSum, kBFloat16, {2048, 512, 49}, {0, 2});
  for (const std::int64_t classes : {2048, 4096, 12288, 30522, 49152, 50257, 131072}) cross_entropy(8192, classes);
  pointwise("squared loss, loss and gradient, bf16, 2^26", "pointwise_loss<SquaredOp, BFloat16>",
            PointwiseKind::kSquared, 64 * kMebi);
  pointwise("binary loss of logits, loss and gradient, bf16, 2^26", "pointwise_loss<BinaryLogitsOp, BFloat16>",
            PointwiseKind::kBinaryLogits, 64 * kMebi);
  soft_maximum("softmax, bf16, 8192 x 50257", 8192, 50257);
  attend("attention, bf16, 1 query, 4096 keys of 128, 256 heads", 256, 1, 4096, 128);
  attend("attention, bf16, 2048 queries, 2048 keys of 64, 16 heads", 16, 2048, 2048, 64);
  normalize("layer normalization, bf16, 8192 x 4096", 8192, 4096);
  movement("transpose, bf16, 4096 x 4096", "transpose_tiles<unsigned short>", 2, {4096, 4096}, {1, 4096});
  movement("transpose, float32, [32, 256, 56 x 56] to channels last", "transpose_tiles<unsigned int>", 4,
           {32, 3136, 256}, {256 * 3136, 1, 3136});
  movement("transpose, bf16, [32, 56 x 56, 256] to channels first", "transpose_tiles<unsigned short>", 2,
           {32, 256, 3136}, {256 * 3136, 1, 256});
  movement("fill, bf16, 4096 x 8192", "move_words<Vector<unsigned int>, MovementKind::kPad>", 2, {4096, 8192}, {});
  return 0;
}

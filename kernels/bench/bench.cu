// Measures the kernels on a GPU machine. Parts run one by one and each appends one line of JSON to the output, so that
// a run that is cut off goes on where it stopped:  kernels_bench --out results.jsonl [--parts a,b] [--seconds 500]
// [--once 1]
// --once runs each operation once and untimed, for profilers. Needs glibc 2.36 and a driver of CUDA 13 (580) or newer.
//
// device       name, SM count, clocks, memory
// bandwidth    read streams of 1 MB, 64 MB, 1 and 2 GB, copy, empty launch: every other figure is a share of the stream
// of
//              its own size
// correctness  against float64 on the host: reductions, cross entropy in every layout (lanes, block, cluster, columns)
// determinism  the same bits in 1000 runs; hashes to compare between machines
// reductions   GB/s, beside cub::DeviceReduce where it has the operation
// losses       cross entropy forward and backward in one pass, pointwise losses: time over the byte floor

#include <cuda_runtime.h>
#include <cub/device/device_reduce.cuh>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/bench/line.h"
#include "kernels/common/vector.h"
#include "kernels/loss/loss.h"
#include "kernels/reduction/reduction.h"

namespace tensorlint::kernels {
namespace {

void must(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "kernels_bench: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(2);
}
void must(Status status, const char* what) {
  if (status == Status::kOk) return;
  std::fprintf(stderr, "kernels_bench: %s: %s%s%s\n", what, describe(status), status.device_error() != 0 ? ": " : "",
               status.device_error() != 0 ? cudaGetErrorString(static_cast<cudaError_t>(status.device_error())) : "");
  std::exit(2);
}

struct DeviceMemory {
  explicit DeviceMemory(std::size_t bytes) : bytes(bytes) {
    must(cudaMalloc(&data, std::max<std::size_t>(bytes, 16)), "cudaMalloc");
  }
  ~DeviceMemory() { cudaFree(data); }
  DeviceMemory(const DeviceMemory&) = delete;
  void* data = nullptr;
  std::size_t bytes;
};

__global__ void fill_words(unsigned* words, std::size_t count, unsigned seed, unsigned keep, unsigned set) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count;
       i += std::size_t{gridDim.x} * blockDim.x) {
    unsigned h = static_cast<unsigned>(i) * 2654435761U ^ seed;  // an integer hash: the values only have to be ordinary
    h ^= h >> 15;
    h *= 0x2c1b3c6dU;
    h ^= h >> 12;
    words[i] = (h & keep) | set;
  }
}

// Finite values of about 1 in size, of either sign, whatever the type: the exponent's high bits are set, its low ones
// random.
void fill(const DeviceMemory& memory, Dtype dtype) {
  unsigned keep = 0x807fffffU, set = 0x3f000000U;  // float32: +-[0.5, 1)
  if (dtype == Dtype::kBFloat16) keep = 0x807f807fU, set = 0x3f003f00U;
  if (dtype == Dtype::kFloat16) keep = 0x83ff83ffU, set = 0x38003800U;
  if (dtype == Dtype::kFloat8E4M3) keep = 0x87878787U, set = 0x30303030U;
  fill_words<<<1024, 256>>>(static_cast<unsigned*>(memory.data), memory.bytes / 4, 1, keep, set);
}

__global__ void fill_labels(long long* labels, long long count, long long classes) {
  for (long long i = blockIdx.x * 256LL + threadIdx.x; i < count; i += gridDim.x * 256LL)
    labels[i] = i * 7919 % classes;
}

__global__ void nothing() {}

// Four independent 16-byte loads a thread and round: the most a kernel can hope for.
__global__ void __launch_bounds__(256) read_stream(const uint4* from, std::size_t count, unsigned* sink) {
  unsigned sum = 0;
  const std::size_t step = std::size_t{gridDim.x} * 256;
  std::size_t i = blockIdx.x * std::size_t{256} + threadIdx.x;
  for (; i + 3 * step < count; i += 4 * step) {
    const uint4 a = from[i], b = from[i + step], c = from[i + 2 * step], d = from[i + 3 * step];
    sum += a.x ^ a.y ^ a.z ^ a.w ^ b.x ^ b.y ^ b.z ^ b.w ^ c.x ^ c.y ^ c.z ^ c.w ^ d.x ^ d.y ^ d.z ^ d.w;
  }
  if (sum == 0x12345678U) *sink = sum;
}

bool only_once = false;  // --once: profilers count launches, and time them themselves

/// Median milliseconds of 20 runs after 3, one event pair a run; not a number with --once.
double time_of(const std::function<void()>& run) {
  if (only_once) {
    run();
    must(cudaDeviceSynchronize(), "kernel");
    return NAN;
  }
  cudaEvent_t begin, end;
  must(cudaEventCreate(&begin), "event");
  must(cudaEventCreate(&end), "event");
  for (int i = 0; i < 3; ++i) run();
  std::vector<float> times;
  for (int i = 0; i < 20; ++i) {
    must(cudaEventRecord(begin), "record");
    run();
    must(cudaEventRecord(end), "record");
    must(cudaEventSynchronize(end), "synchronize");
    float ms = 0;
    must(cudaEventElapsedTime(&ms, begin, end), "elapsed");
    times.push_back(ms);
  }
  must(cudaGetLastError(), "kernel");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::nth_element(times.begin(), times.begin() + 10, times.end());
  return static_cast<double>(times[10]);
}

// Input buffers are rotated beyond any L2 (60 MB): three of them, or as many as make 256 MB.
int rotation(std::size_t bytes) {
  return static_cast<int>(std::max<std::size_t>(3, (std::size_t{256} << 20) / std::max<std::size_t>(bytes, 1) + 1));
}

std::vector<std::string> part_device() {
  cudaDeviceProp p;
  must(cudaGetDeviceProperties(&p, 0), "properties");
  return {Line("device")
              .add("name", p.name)
              .add("multiprocessors", p.multiProcessorCount)
              .add("capability", p.major * 10 + p.minor)
              .add("memory_bytes", static_cast<double>(p.totalGlobalMem))
              .add("l2_bytes", p.l2CacheSize)
              .done()};
}

/// Bytes per ms of a stream that reads `bytes`, in this run: measured once for each size, over as many buffers as the
/// reductions of that size go round. A launch and its events cost a part of a small read, and theirs too.
double read_bandwidth(std::size_t bytes) {
  static std::map<std::size_t, double> measured;
  double& best = measured[bytes];
  if (best > 0 || only_once) return best;
  DeviceMemory sink(16);
  std::vector<std::unique_ptr<DeviceMemory>> inputs;
  for (int i = 0; i < std::min(rotation(bytes), 64); ++i) {
    inputs.push_back(std::make_unique<DeviceMemory>(bytes));
    fill(*inputs.back(), Dtype::kFloat32);
  }
  std::size_t turn = 0;
  for (const int blocks : {132, 264, 528, 1056, 2112, 4224}) {
    const double ms = time_of([&] {
      read_stream<<<blocks, 256>>>(static_cast<const uint4*>(inputs[turn++ % inputs.size()]->data), bytes / 16,
                                   static_cast<unsigned*>(sink.data));
    });
    best = std::max(best, static_cast<double>(bytes) / ms);
  }
  return best;
}
/// Of a stream of 2 GB: what losses move.
double long_read_bandwidth() { return read_bandwidth(std::size_t{2} << 30); }

std::vector<std::string> part_bandwidth() {
  const std::size_t bytes = std::size_t{1} << 30;
  const double copy = [&] {
    DeviceMemory from(bytes), to(bytes);
    return time_of([&] { must(cudaMemcpyAsync(to.data, from.data, bytes, cudaMemcpyDeviceToDevice), "copy"); });
  }();
  const double empty = time_of([] { nothing<<<1, 32>>>(); });
  std::vector<std::string> lines = {Line("bandwidth")
                                        .add("what", "copy")
                                        .add("bytes", 2.0 * static_cast<double>(bytes))
                                        .add("gb_s", 2.0 * static_cast<double>(bytes) / copy / 1e6)
                                        .add("empty_launch_us", empty * 1e3)
                                        .done()};
  for (const std::size_t size : {std::size_t{1} << 20, std::size_t{64} << 20, bytes, 2 * bytes}) {
    lines.push_back(Line("bandwidth")
                        .add("what", "read")
                        .add("bytes", static_cast<double>(size))
                        .add("gb_s", read_bandwidth(size) / 1e6)
                        .done());
  }
  return lines;
}

struct ReductionCase {
  const char* name;
  ReductionKind kind;
  Dtype dtype;
  Dtype result;
};
const ReductionCase kReductions[] = {
    {"sum float32", ReductionKind::kSum, Dtype::kFloat32, Dtype::kFloat32},
    {"sum bfloat16", ReductionKind::kSum, Dtype::kBFloat16, Dtype::kBFloat16},
    {"sum float8_e4m3", ReductionKind::kSum, Dtype::kFloat8E4M3, Dtype::kFloat32},
    {"max float32", ReductionKind::kMax, Dtype::kFloat32, Dtype::kFloat32},
    {"argmax bfloat16", ReductionKind::kArgMax, Dtype::kBFloat16, Dtype::kInt64},
    {"log_sum_exp bfloat16", ReductionKind::kLogSumExp, Dtype::kBFloat16, Dtype::kFloat32},
    {"l2 float32", ReductionKind::kL2, Dtype::kFloat32, Dtype::kFloat32},
    {"product float32", ReductionKind::kProduct, Dtype::kFloat32, Dtype::kFloat32},
};

struct PreparedReduction {
  Reduction request;
  std::vector<std::int64_t> extents;
  std::vector<int> axes;
  std::size_t workspace_bytes = 0;
  PreparedReduction(const ReductionCase& c, std::vector<std::int64_t> e, std::vector<int> a)
      : extents(std::move(e)), axes(std::move(a)) {
    request.kind = c.kind;
    request.dtype = c.dtype;
    request.result_dtype = c.result;
    request.extents = extents.data();
    request.rank = static_cast<int>(extents.size());
    request.axes = axes.data();
    request.axis_count = static_cast<int>(axes.size());
    must(reduction_workspace(request, &workspace_bytes), c.name);
  }
};

std::vector<std::string> part_reductions() {
  std::vector<std::string> lines;
  for (const ReductionCase& c : kReductions) {
    const std::int64_t size = static_cast<std::int64_t>(size_of(c.dtype));
    for (const std::int64_t bytes : {std::int64_t{1} << 20, std::int64_t{64} << 20, std::int64_t{1} << 30}) {
      const std::int64_t n = bytes / size;
      const std::vector<std::pair<const char*, std::pair<std::vector<std::int64_t>, std::vector<int>>>> shapes = {
          {"full", {{n}, {0}}},
          {"rows of 4096", {{n / 4096, 4096}, {1}}},
          {"rows of 4099", {{n / 4099, 4099}, {1}}},
          {"rows of 256", {{n / 256, 256}, {1}}},
          {"columns of 256", {{n / 256, 256}, {0}}},
          {"columns of 3", {{n / 3, 3}, {0}}},
          {"channels of 3136", {{std::max<std::int64_t>(1, n / (64 * 3136)), 64, 3136}, {0, 2}}}};
      for (const auto& [shape, axes] : shapes) {
        PreparedReduction prepared(c, axes.first, axes.second);
        std::int64_t taken = size;
        for (const std::int64_t extent : axes.first) taken *= extent;
        if (taken > bytes) continue;  // not a shape of this size
        std::vector<std::unique_ptr<DeviceMemory>> inputs;
        for (int i = 0; i < std::min(rotation(static_cast<std::size_t>(bytes)), 64); ++i) {
          inputs.push_back(std::make_unique<DeviceMemory>(static_cast<std::size_t>(bytes)));
          fill(*inputs.back(), c.dtype);
        }
        DeviceMemory result(static_cast<std::size_t>(n) * 8 / 3 + 64), workspace(prepared.workspace_bytes);
        must(initialize_reduction_workspace(workspace.data, prepared.workspace_bytes, nullptr), c.name);
        std::size_t turn = 0;
        const double ms = time_of([&] {
          must(reduce(prepared.request, inputs[turn++ % inputs.size()]->data, result.data, workspace.data,
                      workspace.bytes, nullptr),
               c.name);
        });
        Line line("reductions");
        line.add("operation", c.name)
            .add("shape", shape)
            .add("bytes", static_cast<double>(bytes))
            .add("ms", ms)
            .add("gb_s", static_cast<double>(taken) / ms / 1e6)
            .add("share_of_read", static_cast<double>(taken) / ms / read_bandwidth(static_cast<std::size_t>(bytes)));
        const bool sum = std::strcmp(c.name, "sum float32") == 0;
        if ((sum || std::strcmp(c.name, "max float32") == 0) && std::strcmp(shape, "full") == 0) {
          std::size_t room = 0;
          const auto cub_reduce = [&](void* scratch, const void* from) {
            const auto* const in = static_cast<const float*>(from);
            auto* const out = static_cast<float*>(result.data);
            must(sum ? cub::DeviceReduce::Sum(scratch, room, in, out, n)
                     : cub::DeviceReduce::Max(scratch, room, in, out, n),
                 "cub");
          };
          cub_reduce(nullptr, inputs[0]->data);
          DeviceMemory scratch(room);
          line.add("cub_ms", time_of([&] { cub_reduce(scratch.data, inputs[turn++ % inputs.size()]->data); }));
        }
        lines.push_back(line.done());
      }
    }
  }
  return lines;
}

std::uint64_t hash_of(const DeviceMemory& memory, std::size_t bytes) {
  std::vector<unsigned char> host(bytes);
  must(cudaMemcpy(host.data(), memory.data, bytes, cudaMemcpyDeviceToHost), "copy back");
  std::uint64_t hash = 1469598103934665603ULL;  // FNV-1a
  for (const unsigned char byte : host) hash = (hash ^ byte) * 1099511628211ULL;
  return hash;
}

__global__ void count_different(const unsigned* a, const unsigned* b, std::size_t words, unsigned* count) {
  for (std::size_t i = blockIdx.x * std::size_t{256} + threadIdx.x; i < words; i += gridDim.x * std::size_t{256}) {
    if (a[i] != b[i]) atomicAdd(count, 1U);
  }
}

/// Cross entropy over bfloat16 logits with a mean and a gradient, all memory its own.
struct CrossEntropy {
  std::int64_t rows, classes, inner;
  std::size_t elements = static_cast<std::size_t>(rows * classes * inner);
  std::size_t positions = static_cast<std::size_t>(rows * inner);
  DeviceMemory logits{elements * 2}, gradient{elements * 2}, labels{positions * 8}, total{16};
  ClassLoss request;
  std::unique_ptr<DeviceMemory> workspace;
  CrossEntropy(std::int64_t rows, std::int64_t classes, std::int64_t inner)
      : rows(rows), classes(classes), inner(inner) {
    fill(logits, Dtype::kBFloat16);
    fill_labels<<<256, 256>>>(static_cast<long long*>(labels.data), rows * inner, classes);
    request.dtype = Dtype::kBFloat16;
    request.rows = rows;
    request.classes = classes;
    request.inner = inner;
    request.logits = logits.data;
    request.labels = labels.data;
    request.total = total.data;
    request.gradient = gradient.data;
    std::size_t room = 0;
    must(class_loss_workspace(request, &room), "cross entropy");
    workspace = std::make_unique<DeviceMemory>(room);
    must(initialize_loss_workspace(workspace->data, room, nullptr), "cross entropy");
  }
  void run() const { must(class_loss(request, workspace->data, workspace->bytes, nullptr), "cross entropy"); }
  std::string name() const {
    return "cross entropy bfloat16 " + std::to_string(rows) + "x" + std::to_string(classes) + "x" +
           std::to_string(inner);
  }
};
struct ClassShape {
  std::int64_t rows, classes, inner;
};
// Lanes, one block, a cluster of 2, of 8, columns of single elements and of vectors.
const ClassShape kClassShapes[] = {{300, 100, 1},  {40, 20000, 1}, {12, 50000, 1},
                                   {5, 262144, 1}, {3, 50, 37},    {3, 333, 512}};

std::vector<std::string> loss_determinism() {
  std::vector<std::string> lines;
  for (const ClassShape& shape : kClassShapes) {
    const CrossEntropy loss(shape.rows, shape.classes, shape.inner);
    DeviceMemory first(loss.gradient.bytes), different(4);
    must(cudaMemset(different.data, 0, 4), "memset");
    loss.run();
    must(cudaMemcpy(first.data, loss.gradient.data, first.bytes, cudaMemcpyDeviceToDevice), "copy");
    const std::uint64_t total = hash_of(loss.total, 2);
    for (int i = 0; i < 1000; ++i) {
      loss.run();
      count_different<<<256, 256>>>(static_cast<const unsigned*>(first.data),
                                    static_cast<const unsigned*>(loss.gradient.data), first.bytes / 4,
                                    static_cast<unsigned*>(different.data));
    }
    unsigned words = 0;
    must(cudaMemcpy(&words, different.data, 4, cudaMemcpyDeviceToHost), "copy back");
    const bool same = words == 0 && hash_of(loss.total, 2) == total;
    lines.push_back(Line("determinism")
                        .add("operation", loss.name())
                        .add("runs", 1000)
                        .add("different", same ? 1 : 2)
                        .add("hash", std::to_string(hash_of(first, first.bytes) ^ total))
                        .done());
  }
  return lines;
}

std::vector<std::string> part_determinism() {
  std::vector<std::string> lines;
  for (const ReductionCase& c : kReductions) {
    const std::int64_t n = (std::int64_t{16} << 20) / static_cast<std::int64_t>(size_of(c.dtype));
    PreparedReduction prepared(c, {n}, {0});
    DeviceMemory input(std::size_t{16} << 20), result(16), workspace(prepared.workspace_bytes);
    fill(input, c.dtype);
    must(initialize_reduction_workspace(workspace.data, prepared.workspace_bytes, nullptr), c.name);
    std::set<std::uint64_t> hashes;
    for (int i = 0; i < 1000; ++i) {
      must(reduce(prepared.request, input.data, result.data, workspace.data, workspace.bytes, nullptr), c.name);
      hashes.insert(hash_of(result, size_of(c.result)));
    }
    lines.push_back(Line("determinism")
                        .add("operation", c.name)
                        .add("runs", 1000)
                        .add("different", static_cast<double>(hashes.size()))
                        .add("hash", std::to_string(*hashes.begin()))
                        .done());
  }
  for (std::string& line : loss_determinism()) lines.push_back(std::move(line));
  return lines;
}

/// Loss and gradient of every element against float64; the bound is the rounding of the results to bfloat16 and 256
/// roundings of float32.
double worst_of_cross_entropy(const CrossEntropy& loss) {
  const auto as_double = [](std::uint16_t bits) { return static_cast<double>(to_float(BFloat16{bits})); };
  std::vector<std::uint16_t> logits(loss.elements), gradient(loss.elements);
  std::vector<std::int64_t> labels(loss.positions);
  std::uint16_t total = 0;
  loss.run();
  must(cudaMemcpy(logits.data(), loss.logits.data, loss.elements * 2, cudaMemcpyDeviceToHost), "copy back");
  must(cudaMemcpy(gradient.data(), loss.gradient.data, loss.elements * 2, cudaMemcpyDeviceToHost), "copy back");
  must(cudaMemcpy(labels.data(), loss.labels.data, loss.positions * 8, cudaMemcpyDeviceToHost), "copy back");
  must(cudaMemcpy(&total, loss.total.data, 2, cudaMemcpyDeviceToHost), "copy back");
  const auto classes = static_cast<std::size_t>(loss.classes), inner = static_cast<std::size_t>(loss.inner);
  double worst = 0, sum = 0;
  const auto note = [&](double got, double want, double size) {
    const double bound = std::fabs(want) * 0x1p-8 * 1.01 + size * 256 * 0x1p-24 + 0x1p-133;
    worst = std::max(worst, std::isnan(got) ? INFINITY : std::fabs(got - want) / bound);
  };
  for (std::size_t position = 0; position < loss.positions; ++position) {
    const std::size_t start = position / inner * classes * inner + position % inner;
    double exponentials = 0;
    for (std::size_t k = 0; k < classes; ++k) exponentials += std::exp(as_double(logits[start + k * inner]));
    for (std::size_t k = 0; k < classes; ++k) {
      const double share = std::exp(as_double(logits[start + k * inner])) / exponentials;
      const double hit = static_cast<std::int64_t>(k) == labels[position] ? 1.0 : 0.0;
      const auto count = static_cast<double>(loss.positions);
      note(as_double(gradient[start + k * inner]), (share - hit) / count, (share + hit) / count);
    }
    sum += std::log(exponentials) - as_double(logits[start + static_cast<std::size_t>(labels[position]) * inner]);
  }
  const double mean = sum / static_cast<double>(loss.positions);
  note(as_double(total), mean, std::fabs(mean) + 1);
  return worst;
}

std::vector<std::string> part_correctness() {
  std::vector<std::string> lines;
  for (const ReductionCase& c : {kReductions[0], kReductions[3], kReductions[6]}) {
    double worst = 0;
    for (const std::int64_t n : {1, 31, 33, 255, 257, 1023, 4097, 65537, 1000003}) {
      PreparedReduction prepared(c, {n}, {0});
      DeviceMemory input(static_cast<std::size_t>(n + 3) / 4 * 16), result(16), workspace(prepared.workspace_bytes);
      fill(input, c.dtype);
      must(initialize_reduction_workspace(workspace.data, prepared.workspace_bytes, nullptr), c.name);
      must(reduce(prepared.request, input.data, result.data, workspace.data, workspace.bytes, nullptr), c.name);
      std::vector<float> host(static_cast<std::size_t>(n));
      must(cudaMemcpy(host.data(), input.data, host.size() * 4, cudaMemcpyDeviceToHost), "copy back");
      float got = 0;
      must(cudaMemcpy(&got, result.data, 4, cudaMemcpyDeviceToHost), "copy back");
      double sum = 0, absolute = 0, squares = 0, largest = -INFINITY;
      for (const float x : host) {
        sum += x;
        absolute += std::fabs(x);
        squares += static_cast<double>(x) * x;
        largest = std::max(largest, static_cast<double>(x));
      }
      const double depth = 64 + static_cast<double>(n) / 4096;
      const double want = c.kind == ReductionKind::kSum   ? sum
                          : c.kind == ReductionKind::kMax ? largest
                                                          : std::sqrt(squares);
      const double bound = c.kind == ReductionKind::kMax
                               ? 1e-300
                               : (c.kind == ReductionKind::kSum ? absolute * depth : 4 * want) * 0x1p-24;
      worst = std::max(worst, got == want ? 0.0 : std::fabs(got - want) / bound);
    }
    lines.push_back(Line("correctness").add("operation", c.name).add("worst_error_over_bound", worst).done());
  }
  for (const ClassShape& shape : kClassShapes) {
    const CrossEntropy loss(shape.rows, shape.classes, shape.inner);
    lines.push_back(Line("correctness")
                        .add("operation", loss.name())
                        .add("worst_error_over_bound", worst_of_cross_entropy(loss))
                        .done());
  }
  return lines;
}

std::vector<std::string> part_losses() {
  std::vector<std::string> lines;
  const ClassShape shapes[] = {{8192, 131072, 1}, {8192, 32000, 1},  {8192, 30522, 1}, {8192, 49152, 1},
                               {8192, 50257, 1},  {4096, 262144, 1}, {65536, 4096, 1}, {131072, 2048, 1},
                               {1 << 20, 256, 1}, {16, 21, 1 << 18}};
  for (const ClassShape& shape : shapes) {
    const CrossEntropy loss(shape.rows, shape.classes, shape.inner);
    const double ms = time_of([&] { loss.run(); });
    lines.push_back(Line("losses")
                        .add("operation", loss.name())
                        .add("ms", ms)
                        .add("over_byte_floor", ms * long_read_bandwidth() / (4.0 * static_cast<double>(loss.elements)))
                        .done());
  }
  const std::pair<const char*, PointwiseKind> kinds[] = {{"squared", PointwiseKind::kSquared},
                                                         {"absolute", PointwiseKind::kAbsolute},
                                                         {"huber", PointwiseKind::kHuber},
                                                         {"binary logits", PointwiseKind::kBinaryLogits},
                                                         {"kl divergence log", PointwiseKind::kKlDivergenceLog}};
  for (const auto& entry : kinds) {
    const char* const name = entry.first;
    const PointwiseKind kind = entry.second;
    const std::size_t bytes = std::size_t{512} << 20;
    DeviceMemory input(bytes), target(bytes), gradient(bytes), total(16);
    fill(input, Dtype::kBFloat16);
    fill(target, Dtype::kBFloat16);
    PointwiseLoss request;
    request.kind = kind;
    request.dtype = Dtype::kBFloat16;
    request.elements = static_cast<std::int64_t>(bytes / 2);
    request.input = input.data;
    request.target = target.data;
    request.total = total.data;
    request.gradient = gradient.data;
    std::size_t room = 0;
    must(pointwise_loss_workspace(request, &room), name);
    DeviceMemory workspace(room);
    must(initialize_loss_workspace(workspace.data, room, nullptr), name);
    const double ms = time_of([&] { must(pointwise_loss(request, workspace.data, room, nullptr), name); });
    lines.push_back(Line("losses")
                        .add("operation", std::string(name) + " bfloat16")
                        .add("ms", ms)
                        .add("over_byte_floor", ms / (3.0 * static_cast<double>(bytes) / long_read_bandwidth()))
                        .done());
  }
  return lines;
}

int run(int argc, char** argv) {
  std::string out = "kernels_bench.jsonl", wanted;
  double seconds =
      500;  // a part starts only while less than this has gone by: a call on a lent machine ends after 9 minutes
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--out") == 0) out = argv[i + 1];
    if (std::strcmp(argv[i], "--parts") == 0) wanted = argv[i + 1];
    if (std::strcmp(argv[i], "--once") == 0) only_once = std::strcmp(argv[i + 1], "0") != 0;
    if (std::strcmp(argv[i], "--seconds") == 0) seconds = std::atof(argv[i + 1]);
  }
  int devices = 0;
  const cudaError_t counted = cudaGetDeviceCount(&devices);
  if (counted != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "kernels_bench: no GPU here (%s); nothing measured\n",
                 counted != cudaSuccess ? cudaGetErrorString(counted) : "no CUDA device");
    return 2;
  }
  std::string done;  // parts that an earlier run finished
  {
    std::ifstream file(out);
    for (std::string line; std::getline(file, line);) {
      if (line.rfind("{\"finished\": \"", 0) == 0) done += "," + line.substr(14, line.find('"', 14) - 14) + ",";
    }
  }
  const std::pair<const char*, std::vector<std::string> (*)()> parts[] = {
      {"device", part_device},           {"bandwidth", part_bandwidth},   {"correctness", part_correctness},
      {"determinism", part_determinism}, {"reductions", part_reductions}, {"losses", part_losses}};
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& [name, part] : parts) {
    if (!wanted.empty() && ("," + wanted + ",").find("," + std::string(name) + ",") == std::string::npos) continue;
    if (done.find("," + std::string(name) + ",") != std::string::npos) continue;
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > seconds) {
      std::printf("stopped before `%s`; run again to go on\n", name);
      return 3;
    }
    const std::vector<std::string> lines = part();
    std::ofstream file(out, std::ios::app);
    for (const std::string& line : lines) {
      file << line << "\n";
      std::printf("%s\n", line.c_str());
    }
    file << "{\"finished\": \"" << name << "\"}\n";
  }
  return 0;
}

}  // namespace
}  // namespace tensorlint::kernels

int main(int argc, char** argv) { return tensorlint::kernels::run(argc, argv); }

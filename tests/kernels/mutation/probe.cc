// What the mutation run executes: few instances, every synchronisation structure, several schedules; every result
// against a serial reference. Prints the first complaint and exits 1 on a result that differs from the reference or
// between schedules, or on anything the emulator says.   probe [KERNEL]: that kernel's part only.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "kernels/common/workspace.h"
#include "kernels/loss/dispatch.h"
#include "kernels/reduction/kernels.h"
#if defined(PROBE_convolve_tiles) || defined(PROBE_convolve_few_filters) || defined(PROBE_pool_windows)
#define PROBE_WINDOWS
#define TL_WINDOW_INSTANCES
#include "kernels/window/window.cc"
#endif
#if defined(PROBE_normalize_rows)
#define TL_NORMALIZATION_INSTANCES
#include "kernels/normalization/normalization.cc"
#endif
#if defined(PROBE_attend_tiles)
#define TL_ATTENTION_INSTANCES
#include "kernels/attention/attention.cc"
#endif
#if defined(PROBE_elementwise)
#include "kernels/elementwise/dispatch.h"
#include "kernels/elementwise/kernel.h"
namespace tensorlint::kernels {
template <>
Status launch_elementwise<float>(const ElementwiseParameters& parameters, const Geometry& geometry, Stream stream) {
  return launch(&elementwise<float>, geometry, stream, parameters);
}
template <>
Status launch_elementwise<double>(const ElementwiseParameters&, const Geometry&, Stream) {
  return Status::kUnsupportedDtype;
}
template <>
Status launch_elementwise<std::int64_t>(const ElementwiseParameters&, const Geometry&, Stream) {
  return Status::kUnsupportedDtype;
}
}  // namespace tensorlint::kernels
#include "kernels/elementwise/elementwise.cc"
#endif
#if defined(PROBE_move_words)
#define TL_MOVEMENT_INSTANCES
#include "kernels/movement/index_kernels.h"
#include "kernels/movement/movement.cc"
#endif
#if defined(PROBE_multiply_matrices) || defined(PROBE_WINDOWS)
#define TL_PRODUCT_INSTANCES
#include "kernels/product/product.cc"
#endif

namespace tensorlint::kernels {
namespace {

using emulator::Access;
using emulator::Order;

struct Schedule {
  Order order;
  std::uint64_t seed;
};
const Schedule kSchedules[] = {{Order::kInOrder, 1}, {Order::kRandom, 1},   {Order::kPriority, 2},
                               {Order::kRandom, 3},  {Order::kPriority, 4}, {Order::kRandom, 5}};

[[noreturn]] void fail(const std::string& what) {
  std::printf("%s\n", what.c_str());
  std::exit(1);
}

template <typename T>
struct Memory {
  std::vector<T> values;
  Memory(std::size_t count, Access access, const char* name, std::size_t shift = 0)
      : values(count + shift + 16 / sizeof(T)) {
    data = reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(values.data()) + 15) / 16 * 16) + shift;
    size = count;
    emulator::register_buffer(data, count * sizeof(T), sizeof(T), access, name);
  }
  ~Memory() { emulator::unregister_buffer(data); }
  T* data = nullptr;
  std::size_t size = 0;
};

// `run` launches and returns the result's bytes.
template <typename Run>
std::vector<float> in_all_schedules(const char* name, const Run& run) {
  std::vector<float> first;
  for (const Schedule& schedule : kSchedules) {
    emulator::options().order = schedule.order;
    emulator::options().seed = schedule.seed;
    emulator::clear_report();
    const std::vector<float> result = run();
    if (!emulator::report().clean()) fail(std::string(name) + ": " + emulator::report().first);
    if (first.empty()) first = result;
    if (result.size() != first.size() || std::memcmp(result.data(), first.data(), result.size() * sizeof(float)) != 0)
      fail(std::string(name) + ": results differ between schedules");
  }
  return first;
}

void check(const char* name, double got, double want, double scale = 1) {
  if (!(std::fabs(got - want) <= 1e-4 * std::fabs(want) + 1e-6 * scale + 1e-7))
    fail(std::string(name) + ": " + std::to_string(got) + " for " + std::to_string(want));
}

#if defined(PROBE_reduce_rows) || defined(PROBE_reduce_columns)
// Element `i` of the input that belongs to result `r`, for [outer, reduced, inner] reduced over the middle.
struct Middle {
  std::int64_t outer, reduced, inner;
  std::size_t at(std::int64_t r, std::int64_t i) const {
    return static_cast<std::size_t>((r / inner * reduced + i) * inner + r % inner);
  }
};

/// Reduces the middle of `shape`; `split`: units or steps of one split, 0 for the plan's own. `shift`: elements past
/// alignment. `rows_each`: rows of the same lanes.
void probe_reduction(const char* name, const Middle& shape, std::int64_t split, std::size_t shift = 0,
                     unsigned rows_each = 1) {
  using Accumulator = Sum<float, Term::kValue>;
  ReductionParameters p;
  const std::int64_t extents[] = {shape.outer, shape.reduced, shape.inner};
  const int axis = 1;
  fold_axes(extents, 3, &axis, 1, &p.axes);
  plan_reduction(p.axes, 4, sizeof(float), kMergesColumns<Accumulator>, &p.plan);
  p.plan.rows_each = rows_each;
  if (rows_each > 1) p.plan.blocks = (p.plan.blocks + rows_each - 1) / rows_each;
  if (split > 0) {
    const std::int64_t length =
        p.plan.by_columns ? p.plan.columns.outer_reduced : p.axes.outer_reduced * ((p.axes.inner + 3) / 4);
    p.plan.blocks /= p.plan.splits;
    p.plan.split_length = split;
    p.plan.splits = static_cast<unsigned>((length + split - 1) / split);
    p.plan.blocks *= p.plan.splits;
  }
  const std::int64_t results = p.axes.results();
  Memory<float> input(static_cast<std::size_t>(results * shape.reduced), Access::kReadOnly, "input", shift);
  for (std::size_t i = 0; i < input.size; ++i) input.data[i] = static_cast<float>(i % 113) * 0.37F + 1.0F;
  Memory<unsigned> workspace(kTicketBytes / 4 + static_cast<std::size_t>(results) * p.plan.splits, Access::kWriteFirst,
                             "workspace");
  zero_tickets(workspace.data, kTicketBytes, nullptr);
  p.input = input.data;
  p.tickets = tickets_of(workspace.data);
  p.partials = scratch_of(workspace.data);
  p.elements_each = p.axes.elements_each();
  const std::vector<float> result = in_all_schedules(name, [&] {
    Memory<float> output(static_cast<std::size_t>(results), Access::kWriteFirst, "output");
    p.output = output.data;
    launch_reduction<Accumulator>(p, nullptr);
    return std::vector<float>(output.data, output.data + output.size);
  });
  for (std::int64_t r = 0; r < results; ++r) {
    double want = 0;
    for (std::int64_t i = 0; i < shape.reduced; ++i) want += static_cast<double>(input.data[shape.at(r, i)]);
    check(name, static_cast<double>(result[static_cast<std::size_t>(r)]), want);
  }
}

/// Columns of bytes with states of 16 bytes, of which shared memory has half of a thread's at once. `split`: rows of
/// one split, 0 for no splits.
void probe_columns_of_bytes(std::int64_t rows, std::int64_t columns, std::int64_t split) {
  using Accumulator = ArgExtreme<std::int8_t>;
  using State = typename Accumulator::State;
  static_assert(kStatesAtOnce<Accumulator> < Vector<std::int8_t>::kSize);
  ReductionParameters p;
  const std::int64_t extents[] = {rows, columns};
  const int axis = 0;
  fold_axes(extents, 2, &axis, 1, &p.axes);
  plan_reduction(p.axes, 16, sizeof(State), false, &p.plan);
  if (split > 0) {
    p.plan.split_length = split;
    p.plan.splits = static_cast<unsigned>((rows + split - 1) / split);
    p.plan.blocks *= p.plan.splits;
  }
  const auto results = static_cast<std::size_t>(columns);
  Memory<std::int8_t> input(static_cast<std::size_t>(rows) * results, Access::kReadOnly, "input");
  for (std::size_t i = 0; i < input.size; ++i) input.data[i] = static_cast<std::int8_t>(i * 89 % 251);
  Memory<std::uint32_t> workspace(kTicketBytes / 4 + results * p.plan.splits * sizeof(State) / 4, Access::kWriteFirst,
                                  "workspace");
  zero_tickets(workspace.data, kTicketBytes, nullptr);
  p.input = input.data;
  p.tickets = tickets_of(workspace.data);
  p.partials = scratch_of(workspace.data);
  p.elements_each = p.axes.elements_each();
  p.output_dtype = Dtype::kInt64;
  const std::vector<float> result = in_all_schedules("columns of bytes", [&] {
    Memory<std::int64_t> output(results, Access::kWriteFirst, "output");
    p.output = output.data;
    launch_reduction<Accumulator>(p, nullptr);
    return std::vector<float>(output.data, output.data + results);
  });
  for (std::int64_t column = 0; column < columns; ++column) {
    std::int64_t best = 0;
    for (std::int64_t row = 1; row < rows; ++row)
      if (input.data[row * columns + column] > input.data[best * columns + column]) best = row;
    check("columns of bytes", static_cast<double>(result[static_cast<std::size_t>(column)]), static_cast<double>(best));
  }
}

/// Segments: the outer and the inner axis are reduced.
void probe_segments(std::size_t outer, std::size_t kept, std::size_t inner, std::size_t shift) {
  using Accumulator = Sum<float, Term::kValue>;
  ReductionParameters p;
  const std::int64_t extents[] = {static_cast<std::int64_t>(outer), static_cast<std::int64_t>(kept),
                                  static_cast<std::int64_t>(inner)};
  const int axes[] = {0, 2};
  fold_axes(extents, 3, axes, 2, &p.axes);
  plan_reduction(p.axes, 4, sizeof(float), kMergesColumns<Accumulator>, &p.plan);
  Memory<float> input(outer * kept * inner, Access::kReadOnly, "input", shift);
  for (std::size_t i = 0; i < input.size; ++i) input.data[i] = static_cast<float>(i % 113) * 0.37F + 1.0F;
  p.input = input.data;
  p.elements_each = p.axes.elements_each();
  const std::vector<float> result = in_all_schedules("segments", [&] {
    Memory<float> output(kept, Access::kWriteFirst, "output");
    p.output = output.data;
    launch_reduction<Accumulator>(p, nullptr);
    return std::vector<float>(output.data, output.data + kept);
  });
  for (std::size_t r = 0; r < kept; ++r) {
    double want = 0;
    for (std::size_t i = 0; i < outer * inner; ++i)
      want += static_cast<double>(input.data[(i / inner * kept + r) * inner + i % inner]);
    check("segments", static_cast<double>(result[r]), want);
  }
}
#endif

#if defined(PROBE_class_rows) || defined(PROBE_class_columns)
struct ClassProbe {
  std::int64_t rows, classes, inner;
  std::size_t part_bytes;
  unsigned blocks;
  ClassTask task = ClassTask::kIndices;
  float smoothing = 0;
  int capability = 90;
  std::size_t shift = 0;
  bool warps = false;  // a warp a row, kept in shared memory, though rows are few
};

/// In place, since nothing else shows a logit that is read too late. Total and every gradient against float64.
void probe_classes(const char* name, const ClassProbe& c) {
  const std::int64_t inner = c.inner;
  ClassParameters<float> p;
  plan_class_rows(c.rows, c.classes, 4, true, c.capability, c.part_bytes, &p.plan);
  if (inner > 1) {
    plan_class_columns(c.rows, c.classes, inner, 4, &p.plan);
    p.by_inner = Divisor::of(inner);
  }
  if (c.warps) {
    p.plan.lanes = kWarpLanes;
    p.plan.cached = true;
    p.plan.shared_bytes = static_cast<std::size_t>(p.plan.part) * 16 * kWarps;
  }
  p.plan.blocks = c.blocks * p.plan.cluster;
  const auto positions = static_cast<std::size_t>(c.rows * inner), k = static_cast<std::size_t>(c.classes),
             in = static_cast<std::size_t>(inner), elements = positions * k;
  const auto logit = [](std::size_t i) { return static_cast<float>(i * 7919 % 1000) * 0.01F; };
  const auto target = [](std::size_t i) { return static_cast<float>(i % 7) * 0.125F; };
  const bool soft = c.task == ClassTask::kProbabilities;
  Memory<float> probabilities(soft ? elements : 0, Access::kReadOnly, "probabilities", c.shift);
  for (std::size_t i = 0; i < probabilities.size; ++i) probabilities.data[i] = target(i);
  Memory<std::int64_t> labels(positions, Access::kReadOnly, "labels");
  for (std::size_t i = 0; i < positions; ++i)
    labels.data[i] = i % 5 == 2 ? -100 : i % 9 == 4 ? c.classes - 1 : static_cast<std::int64_t>(i * 31) % c.classes;
  Memory<double> partials(p.plan.blocks, Access::kWriteFirst, "partials");
  Memory<unsigned> ticket(1, Access::kReadWrite, "ticket");
  ticket.data[0] = 0;
  p.second = probabilities.data;
  p.labels.data = labels.data;
  p.rows = c.rows;
  p.classes = c.classes;
  p.inner = inner;
  p.partials = partials.data;
  p.ticket = ticket.data;
  p.smoothing = c.smoothing;
  p.even_share = c.smoothing / static_cast<float>(c.classes);
  const Geometry geometry = {p.plan.blocks, kThreads, p.plan.cluster, p.plan.shared_bytes};
  const std::vector<float> result = in_all_schedules(name, [&] {
    Memory<float> logits(elements, Access::kReadWrite, "logits", c.shift), total(1, Access::kWriteFirst, "total");
    Memory<float> losses(positions, Access::kWriteFirst, "losses");
    for (std::size_t i = 0; i < elements; ++i) logits.data[i] = logit(i);
    p.logits = logits.data;
    p.output = logits.data;
    p.total = total.data;
    p.losses = losses.data;
    void (*const kernel)(ClassParameters<float>) =
        soft ? (inner == 1 ? &class_rows<ClassTask::kProbabilities, float>
                           : &class_columns<ClassTask::kProbabilities, float>)
             : (inner == 1 ? &class_rows<ClassTask::kIndices, float> : &class_columns<ClassTask::kIndices, float>);
    if (launch(kernel, geometry, nullptr, p) != Status::kOk) fail(std::string(name) + ": launch failed");
    std::vector<float> all(logits.data, logits.data + logits.size);
    all.insert(all.end(), losses.data, losses.data + positions);
    all.push_back(total.data[0]);
    return all;
  });
  double total = 0;
  for (std::size_t position = 0; position < positions; ++position) {
    const std::size_t start = position / in * k * in + position % in;
    const bool skipped = !soft && labels.data[position] < 0;
    double sum = 0, mass = 0, loss = 0;
    const auto share = [&](std::size_t i) {
      const double own = soft ? static_cast<double>(target(start + i * in))
                         : static_cast<std::int64_t>(i) == labels.data[position] ? 1.0
                                                                                 : 0.0;
      return (1 - static_cast<double>(c.smoothing)) * own + static_cast<double>(c.smoothing) / static_cast<double>(k);
    };
    for (std::size_t i = 0; i < k; ++i) sum += std::exp(static_cast<double>(logit(start + i * in)));
    for (std::size_t i = 0; i < k && !skipped; ++i) {
      mass += share(i);
      loss += share(i) * (std::log(sum) - static_cast<double>(logit(start + i * in)));
    }
    for (std::size_t i = 0; i < k; ++i) {
      const double want = skipped ? 0 : mass * std::exp(static_cast<double>(logit(start + i * in))) / sum - share(i);
      check(name, static_cast<double>(result[start + i * in]), want, mass);
    }
    check(name, static_cast<double>(result[elements + position]), loss, mass);
    total += loss;
  }
  check(name, static_cast<double>(result.back()), total);
}
#endif

#if defined(PROBE_softmax_gradient)
void probe_softmax_gradient(const char* name, std::int64_t rows, std::int64_t classes, std::int64_t inner) {
  ClassParameters<float> p;
  plan_class_rows(rows, classes, 4, false, 0, kPartBytes, &p.plan);
  if (inner > 1) {
    plan_class_columns(rows, classes, inner, 4, &p.plan);
    p.by_inner = Divisor::of(inner);
  }
  p.plan.blocks = 2;
  p.plan.cluster = 1;
  const auto elements = static_cast<std::size_t>(rows * classes * inner);
  Memory<float> y(elements, Access::kReadOnly, "y"), g(elements, Access::kReadOnly, "g");
  for (std::size_t i = 0; i < elements; ++i) {
    y.data[i] = static_cast<float>(i % 13) * 0.01F;
    g.data[i] = static_cast<float>(i % 17) - 8.0F;
  }
  p.logits = y.data;
  p.second = g.data;
  p.rows = rows;
  p.classes = classes;
  p.inner = inner;
  const std::vector<float> result = in_all_schedules(name, [&] {
    Memory<float> output(elements, Access::kWriteFirst, "output");
    p.output = output.data;
    launch(&softmax_gradient<float>, {p.plan.blocks, kThreads, 1, 0}, nullptr, p);
    return std::vector<float>(output.data, output.data + output.size);
  });
  const std::size_t in = static_cast<std::size_t>(inner), k = static_cast<std::size_t>(classes);
  for (std::size_t position = 0; position < static_cast<std::size_t>(rows) * in; ++position) {
    const std::size_t start = position / in * k * in + position % in;
    double dot = 0, size = 0;
    for (std::size_t i = 0; i < k; ++i) {
      const double part = static_cast<double>(y.data[start + i * in]) * static_cast<double>(g.data[start + i * in]);
      dot += part;
      size += std::fabs(part);
    }
    for (std::size_t i = 0; i < k; ++i) {
      const std::size_t at = start + i * in;
      check(name, static_cast<double>(result[at]),
            static_cast<double>(y.data[at]) * (static_cast<double>(g.data[at]) - dot), 1 + size);
    }
  }
}
#endif

#if defined(PROBE_scan_labels)
void probe_labels(unsigned blocks, std::size_t positions, std::size_t shift) {
  LabelParameters<float> p;
  Memory<std::int64_t> labels(positions, Access::kReadOnly, "labels", shift);
  for (std::size_t i = 0; i < labels.size; ++i) labels.data[i] = static_cast<std::int64_t>(i % 12) - 1;
  labels.data[0] = 3;  // the first bad one is in a later place
  labels.data[positions - 1] = 10;
  Memory<unsigned> ticket(1, Access::kReadWrite, "ticket");
  ticket.data[0] = 0;
  p.labels.data = labels.data;
  p.ticket = ticket.data;
  p.positions = static_cast<std::int64_t>(positions);
  p.classes = 10;
  p.blocks = blocks;
  const std::vector<float> result = in_all_schedules("labels", [&] {
    // Anew in each run: what an earlier one left must not pass for this one's.
    Memory<double> summary(3, Access::kWriteFirst, "summary"), partials(3 * blocks, Access::kWriteFirst, "partials");
    Memory<std::int64_t> report(2, Access::kWriteFirst, "report");
    p.summary = reinterpret_cast<LabelSummary*>(summary.data);
    p.partials = reinterpret_cast<LabelSummary*>(partials.data);
    p.report = report.data;
    launch(&scan_labels<float>, {blocks, kThreads, 1, 0}, nullptr, p);
    return std::vector<float>{static_cast<float>(summary.data[0]), static_cast<float>(report.data[0]),
                              static_cast<float>(report.data[1])};
  });
  double bad = 0;
  for (std::size_t i = 0; i < positions; ++i) bad += labels.data[i] < 0 || labels.data[i] >= 10 ? 1 : 0;
  check("labels", static_cast<double>(result[0]), static_cast<double>(positions) - bad);
  check("labels", static_cast<double>(result[1]), bad);
  check("labels", static_cast<double>(result[2]), 11);
}
#endif

#if defined(PROBE_pointwise_loss)
void probe_pointwise(const char* name, std::int64_t elements, std::int64_t split_length, std::size_t shift) {
  PointwiseParameters<float> p;
  const auto count = static_cast<std::size_t>(elements);
  Memory<float> x(count, Access::kReadOnly, "x", shift), t(count, Access::kReadOnly, "t", shift),
      weight(3, Access::kReadOnly, "weight"), upstream(1, Access::kReadOnly, "upstream");
  for (std::size_t i = 0; i < count; ++i) {
    x.data[i] = static_cast<float>(i % 13) * 0.25F;
    t.data[i] = static_cast<float>(i % 7) * 0.5F - 1.0F;
  }
  for (std::size_t i = 0; i < 3; ++i) weight.data[i] = 1.0F + static_cast<float>(i);
  upstream.data[0] = 0.5F;
  p.input = x.data;
  p.target = t.data;
  p.weight = weight.data;
  p.weight_period = Divisor::of(3);
  p.upstream = upstream.data;
  p.elements = elements;
  p.split_length = split_length;
  p.blocks = static_cast<unsigned>(std::max<std::int64_t>(1, (elements / 4 + split_length - 1) / split_length));
  p.aligned = shift == 0;
  Memory<double> partials(p.blocks, Access::kWriteFirst, "partials");
  Memory<unsigned> ticket(1, Access::kReadWrite, "ticket");
  ticket.data[0] = 0;
  p.partials = partials.data;
  p.ticket = ticket.data;
  const std::vector<float> result = in_all_schedules(name, [&] {
    Memory<float> losses(count, Access::kWriteFirst, "losses", shift),
        gradient(count, Access::kWriteFirst, "gradient", shift), total(1, Access::kWriteFirst, "total");
    p.losses = losses.data;
    p.gradient = gradient.data;
    p.total = total.data;
    launch(&pointwise_loss<SquaredOp, float>, {p.blocks, kThreads, 1, 0}, nullptr, p);
    std::vector<float> all(losses.data, losses.data + count);
    all.insert(all.end(), gradient.data, gradient.data + count);
    all.push_back(total.data[0]);
    return all;
  });
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double d = static_cast<double>(x.data[i]) - static_cast<double>(t.data[i]),
                 w = 1.0 + static_cast<double>(i % 3);
    check(name, static_cast<double>(result[i]), w * d * d);
    check(name, static_cast<double>(result[count + i]), w * d);
    sum += w * d * d;
  }
  check(name, static_cast<double>(result.back()), sum);
}
#endif

#if defined(PROBE_negative_log_likelihood)
void probe_likelihood(const char* name, std::int64_t rows, std::int64_t classes, std::int64_t inner,
                      std::size_t shift) {
  ClassParameters<float> p;
  const auto positions = static_cast<std::size_t>(rows * inner), k = static_cast<std::size_t>(classes),
             in = static_cast<std::size_t>(inner), elements = positions * k;
  Memory<float> logits(elements, Access::kReadOnly, "logits");
  Memory<std::int64_t> labels(positions, Access::kReadOnly, "labels");
  for (std::size_t i = 0; i < elements; ++i) logits.data[i] = -static_cast<float>(i % 19) * 0.25F;
  for (std::size_t i = 0; i < positions; ++i)
    labels.data[i] = i % 5 == 2 ? -100 : static_cast<std::int64_t>(i * 31) % classes;
  Memory<double> partials(2, Access::kWriteFirst, "partials");
  Memory<unsigned> ticket(1, Access::kReadWrite, "ticket");
  ticket.data[0] = 0;
  p.logits = logits.data;
  p.labels.data = labels.data;
  p.partials = partials.data;
  p.ticket = ticket.data;
  p.rows = rows;
  p.classes = classes;
  p.inner = inner;
  p.by_inner = Divisor::of(inner);
  p.by_classes = Divisor::of(classes);
  p.plan.blocks = 2;
  const std::vector<float> result = in_all_schedules(name, [&] {
    Memory<float> losses(positions, Access::kWriteFirst, "losses"),
        gradient(elements, Access::kWriteFirst, "gradient", shift), total(1, Access::kWriteFirst, "total");
    p.losses = losses.data;
    p.output = gradient.data;
    p.total = total.data;
    launch(&negative_log_likelihood<float>, {2, kThreads, 1, 0}, nullptr, p);
    std::vector<float> all(gradient.data, gradient.data + elements);
    all.insert(all.end(), losses.data, losses.data + positions);
    all.push_back(total.data[0]);
    return all;
  });
  double sum = 0;
  for (std::size_t position = 0; position < positions; ++position) {
    const std::size_t start = position / in * k * in + position % in;
    const std::int64_t label = labels.data[position];
    for (std::size_t i = 0; i < k; ++i)
      check(name, static_cast<double>(result[start + i * in]), static_cast<std::int64_t>(i) == label ? -1 : 0);
    const double loss = label < 0 ? 0 : -static_cast<double>(logits.data[start + static_cast<std::size_t>(label) * in]);
    check(name, static_cast<double>(result[elements + position]), loss);
    sum += loss;
  }
  check(name, static_cast<double>(result.back()), sum);
}
#endif

#if defined(PROBE_cosine_embedding)
void probe_cosine(const char* name, std::int64_t length) {
  CosineParameters<float> p;
  const auto elements = static_cast<std::size_t>(5 * length);
  Memory<float> a(elements, Access::kReadOnly, "a"), b(elements, Access::kReadOnly, "b"),
      target(5, Access::kReadOnly, "target");
  for (std::size_t i = 0; i < elements; ++i) {
    a.data[i] = static_cast<float>(i % 13) - 5.0F;
    b.data[i] = static_cast<float>(i % 7) - 2.0F;
  }
  for (std::size_t i = 0; i < 5; ++i) target.data[i] = 1.0F;
  Memory<double> partials(3, Access::kWriteFirst, "partials");
  Memory<unsigned> ticket(1, Access::kReadWrite, "ticket");
  ticket.data[0] = 0;
  p.first = a.data;
  p.second = b.data;
  p.target = target.data;
  p.partials = partials.data;
  p.ticket = ticket.data;
  p.rows = 5;
  p.length = length;
  p.lanes = length > 512 ? kThreads : 32;
  const unsigned blocks = length > 512 ? 2 : 1;
  const std::vector<float> result = in_all_schedules(name, [&] {
    Memory<float> total(1, Access::kWriteFirst, "total"), gradient(elements, Access::kWriteFirst, "gradient");
    Memory<float> second_gradient(elements, Access::kWriteFirst, "second gradient"),
        losses(5, Access::kWriteFirst, "losses");
    p.total = total.data;
    p.losses = losses.data;
    p.first_gradient = gradient.data;
    p.second_gradient = second_gradient.data;
    launch(&cosine_embedding<float>, {blocks, kThreads, 1, 0}, nullptr, p);
    std::vector<float> all(gradient.data, gradient.data + gradient.size);
    all.insert(all.end(), second_gradient.data, second_gradient.data + elements);
    all.insert(all.end(), losses.data, losses.data + 5);
    all.push_back(total.data[0]);
    return all;
  });
  double want = 0;
  for (std::size_t row = 0; row < 5; ++row) {
    double dot = 0, aa = 0, bb = 0;
    for (std::size_t i = row * static_cast<std::size_t>(length); i < (row + 1) * static_cast<std::size_t>(length);
         ++i) {
      dot += static_cast<double>(a.data[i] * b.data[i]);
      aa += static_cast<double>(a.data[i] * a.data[i]);
      bb += static_cast<double>(b.data[i] * b.data[i]);
    }
    const double norm = std::sqrt(aa * bb), cosine = dot / norm;
    for (std::size_t i = row * static_cast<std::size_t>(length); i < (row + 1) * static_cast<std::size_t>(length);
         ++i) {
      const double x = static_cast<double>(a.data[i]), y = static_cast<double>(b.data[i]);
      check(name, static_cast<double>(result[i]), -(y / norm - cosine * x / aa));
      check(name, static_cast<double>(result[elements + i]), -(x / norm - cosine * y / bb));
    }
    check(name, static_cast<double>(result[2 * elements + row]), 1 - cosine);
    want += 1 - cosine;
  }
  check(name, static_cast<double>(result.back()), want);
}
#endif

#if defined(PROBE_multiply_matrices)
/// Rows of `pitch` elements, of the operand or of what it is turned from.
struct Operand {
  std::int64_t pitch;
  bool turned = false;
  std::vector<std::int64_t> batch = {};  // strides
  std::size_t shift = 0;
};

MatrixOperand strides_of(const Operand& operand) {
  MatrixOperand strides;
  strides.row = operand.turned ? 1 : operand.pitch;
  strides.column = operand.turned ? operand.pitch : 1;
  std::copy(operand.batch.begin(), operand.batch.end(), strides.batch);
  return strides;
}

std::int64_t first_of(const MatrixProduct& request, const MatrixOperand& operand, std::int64_t matrix) {
  std::int64_t first = 0;
  for (int axis = request.batch_rank; axis-- > 0; matrix /= request.batch[axis])
    first += matrix % request.batch[axis] * operand.batch[axis];
  return first;
}

/// `a`, `b` and `addend` end with their last element. `blocks`: fewer than tiles, so that they are walked.
void probe_product(const char* name, std::int64_t m, std::int64_t n, std::int64_t k, int tile, unsigned blocks,
                   const Operand& a, const Operand& b, const Operand& addend = {0},
                   const std::vector<std::int64_t>& batch = {}) {
  MatrixProduct request;
  request.m = m;
  request.n = n;
  request.k = k;
  request.batch_rank = static_cast<int>(batch.size());
  std::copy(batch.begin(), batch.end(), request.batch);
  request.a = strides_of(a);
  request.b = strides_of(b);
  request.addend = strides_of(addend);
  request.alpha = 0.5;
  request.beta = -2;
  const auto memory = [&](const MatrixOperand& operand, std::int64_t rows, std::int64_t columns, std::size_t shift) {
    std::int64_t elements = 0;
    reach_of(operand, rows, columns, {request.batch_rank, request.batch}, &elements);
    Memory<float>* const made =
        new Memory<float>(static_cast<std::size_t>(elements), Access::kReadOnly, "operand", shift);
    for (std::size_t i = 0; i < made->size; ++i) made->data[i] = static_cast<float>((i * 7 + 3) % 11) - 4.0F;
    return std::unique_ptr<Memory<float>>(made);
  };
  const auto left = memory(request.a, m, k, a.shift), right = memory(request.b, k, n, b.shift),
             added = memory(request.addend, m, n, addend.shift);
  request.a.data = left->data;
  request.b.data = right->data;
  request.addend.data = added->data;
  const MatrixProduct given = request;
  fold_batch(&request);
  ProductPlan plan;
  plan_product(request.m, request.n, stack_of(request), Dtype::kFloat32, &plan);
  plan.tile = tile;
  plan.row_tiles = ceil_div(request.m, 64 * tile);
  plan.column_tiles = ceil_div(request.n, 64 * tile);
  plan.tiles = plan.row_tiles * plan.column_tiles * stack_of(request);
  plan.blocks = std::min(blocks, static_cast<unsigned>(plan.tiles));
  const auto results = static_cast<std::size_t>(stack_of(given) * m * n);
  const std::vector<float> result = in_all_schedules(name, [&] {
    Memory<float> output(results, Access::kWriteFirst, "result");
    request.result = output.data;
    launch_product<float>(parameters_of<float>(request, plan), nullptr);
    return std::vector<float>(output.data, output.data + output.size);
  });
  for (std::size_t i = 0; i < results; ++i) {
    const auto at = static_cast<std::int64_t>(i), matrix = at / (m * n), row = at / n % m, column = at % n;
    const float* const x = left->data + first_of(given, given.a, matrix) + row * given.a.row;
    const float* const y = right->data + first_of(given, given.b, matrix) + column * given.b.column;
    double want =
        -2.0 *
        static_cast<double>(
            added->data[first_of(given, given.addend, matrix) + row * given.addend.row + column * given.addend.column]);
    for (std::int64_t p = 0; p < k; ++p)
      want += 0.5 * static_cast<double>(x[p * given.a.column]) * static_cast<double>(y[p * given.b.row]);
    check(name, static_cast<double>(result[i]), want);
  }
}
#endif

#if defined(PROBE_WINDOWS)
/// visit(index of the element in the window, index in the image) for each element of window `position` in the image.
template <typename Visit>
void visit_window(const WindowAxis (&axes)[kWindowAxes], std::int64_t position, const Visit& visit) {
  for (std::int64_t i = 0; i < axes[0].kernel; ++i) {
    for (std::int64_t j = 0; j < axes[1].kernel; ++j) {
      const std::int64_t y = position / axes[1].out * axes[0].stride - axes[0].begin + i * axes[0].dilation;
      const std::int64_t x = position % axes[1].out * axes[1].stride - axes[1].begin + j * axes[1].dilation;
      if (y >= 0 && y < axes[0].in && x >= 0 && x < axes[1].in) visit(i * axes[1].kernel + j, y * axes[1].in + x);
    }
  }
}

void probe_convolution(const char* name, std::int64_t channels, std::int64_t filters, std::int64_t groups,
                       const WindowAxis& rows, const WindowAxis& columns) {
  Convolution request;
  request.batch = 2;
  request.channels = channels;
  request.filters = filters;
  request.groups = groups;
  request.axes[0] = rows;
  request.axes[1] = columns;
  const std::int64_t plane = rows.in * columns.in, window = rows.kernel * columns.kernel,
                     positions = rows.out * columns.out, each = channels / groups;
  Memory<float> data(static_cast<std::size_t>(2 * channels * plane), Access::kReadOnly, "data");
  Memory<float> weight(static_cast<std::size_t>(filters * each * window), Access::kReadOnly, "weight");
  Memory<float> bias(static_cast<std::size_t>(filters), Access::kReadOnly, "bias");
  for (std::size_t i = 0; i < data.size; ++i) data.data[i] = static_cast<float>((i * 7 + 3) % 11) - 4.0F;
  for (std::size_t i = 0; i < weight.size; ++i) weight.data[i] = static_cast<float>((i * 5 + 1) % 7) - 2.5F;
  for (std::size_t i = 0; i < bias.size; ++i) bias.data[i] = static_cast<float>(i % 7) * 8.0F;
  request.data = data.data;
  request.weight = weight.data;
  request.bias = bias.data;
  const auto results = static_cast<std::size_t>(2 * filters * positions);
  const std::vector<float> result = in_all_schedules(name, [&] {
    Memory<float> output(results, Access::kWriteFirst, "result");
    request.result = output.data;
    convolution(request, nullptr);
    return std::vector<float>(output.data, output.data + output.size);
  });
  for (std::size_t i = 0; i < results; ++i) {
    const auto at = static_cast<std::int64_t>(i), position = at % positions, filter = at / positions % filters,
               image = at / positions / filters;
    double want = static_cast<double>(bias.data[filter]);
    for (std::int64_t channel = 0; channel < each; ++channel) {
      const float* const from = data.data + (image * channels + filter / (filters / groups) * each + channel) * plane;
      visit_window(request.axes, position, [&](std::int64_t tap, std::int64_t element) {
        want += static_cast<double>(from[element]) *
                static_cast<double>(weight.data[(filter * each + channel) * window + tap]);
      });
    }
    check(name, static_cast<double>(result[i]), want);
  }
}

void probe_pool(const char* name, PoolingKind kind, const WindowAxis& rows, const WindowAxis& columns) {
  Pooling request;
  request.kind = kind;
  request.images = 3;
  request.axes[0] = rows;
  request.axes[1] = columns;
  const std::int64_t plane = rows.in * columns.in, positions = rows.out * columns.out;
  Memory<float> data(static_cast<std::size_t>(3 * plane), Access::kReadOnly, "data");
  for (std::size_t i = 0; i < data.size; ++i) data.data[i] = static_cast<float>((i * 7 + 3) % 11) - 14.0F;
  request.data = data.data;
  const std::vector<float> result = in_all_schedules(name, [&] {
    Memory<float> output(static_cast<std::size_t>(3 * positions), Access::kWriteFirst, "result");
    request.result = output.data;
    pooling(request, nullptr);
    return std::vector<float>(output.data, output.data + output.size);
  });
  for (std::int64_t i = 0; i < 3 * positions; ++i) {
    double largest = -INFINITY, sum = 0, count = 0;
    visit_window(request.axes, i % positions, [&](std::int64_t, std::int64_t element) {
      const double x = static_cast<double>(data.data[i / positions * plane + element]);
      largest = std::max(largest, x);
      sum += x;
      ++count;
    });
    if (kind == PoolingKind::kAverageWithPadding) {
      WindowAxis padded[kWindowAxes] = {rows, columns};
      for (WindowAxis& axis : padded) axis.in += axis.begin + axis.end, axis.begin = 0;
      count = 0;
      visit_window(padded, i % positions, [&](std::int64_t, std::int64_t) { ++count; });
    }
    const auto got = static_cast<double>(result[static_cast<std::size_t>(i)]);
    check(name, got, kind == PoolingKind::kMax ? largest : sum / count);
  }
}
#endif

#if defined(PROBE_attend_tiles)
struct AttentionProbe {
  std::int64_t queries, keys, width, value_width;
  std::int64_t stack = 1;
  AttentionMask mask = AttentionMask::kNone;
  bool causal = false;
  std::int64_t offset = 0;
  UndefinedRows undefined = UndefinedRows::kNotANumber;
  bool interleaved = false;     // results of all matrices beside each other
  std::int64_t result_gap = 0;  // between the matrices of results
  bool one_block = false;       // which walks the tiles
  bool empty_first = false;     // the first 64 keys, and all of row 1, are masked with -infinity
  std::int64_t row_gap = 0;     // between rows of results
};

void probe_attention(const char* name, const AttentionProbe& c) {
  const auto memory = [](std::int64_t elements, int seed, const char* what) {
    auto made = std::make_unique<Memory<float>>(static_cast<std::size_t>(elements), Access::kReadOnly, what);
    for (std::size_t i = 0; i < made->size; ++i)
      made->data[i] = static_cast<float>((i * 7 + i / 5 + static_cast<std::size_t>(seed)) % 11) / 4.0F - 1.25F;
    return made;
  };
  const auto query = memory(c.stack * c.queries * c.width, 1, "query"),
             key = memory(c.stack * c.keys * c.width, 2, "key"),
             value = memory(c.stack * c.keys * c.value_width, 3, "value"),
             mask = memory(c.stack * c.queries * c.keys, 4, "mask");
  Memory<std::uint8_t> flags(mask->size, Access::kReadOnly, "flags");
  for (std::size_t i = 0; i < mask->size; ++i) flags.data[i] = static_cast<std::uint8_t>(i * 5 % 3);
  if (c.empty_first)
    for (std::size_t i = 0; i < mask->size; ++i) {
      const auto row = static_cast<std::int64_t>(i) / c.keys % c.queries,
                 column = static_cast<std::int64_t>(i) % c.keys;
      if (column < 64 || row == 1) mask->data[i] = -INFINITY;
    }
  Attention request;
  request.queries = c.queries, request.keys = c.keys, request.width = c.width, request.value_width = c.value_width;
  // Matrices in the order of their numbers, along two axes where there are enough.
  const std::int64_t inner = c.stack % 4 == 0 ? 2 : 1;
  request.batch_rank = 2, request.batch[0] = c.stack / inner, request.batch[1] = inner;
  const auto operand = [&](const void* data, std::int64_t rows, std::int64_t columns) {
    return MatrixOperand{data, columns, 1, {inner * rows * columns, rows * columns}};
  };
  request.query = operand(query->data, c.queries, c.width);
  request.key = operand(key->data, c.keys, c.width);
  request.value = operand(value->data, c.keys, c.value_width);
  request.mask = operand(mask->data, c.queries, c.keys);
  request.mask_kind = c.mask;
  if (c.mask != AttentionMask::kAdded) request.mask.data = flags.data;
  request.fill = -2;
  request.scale = 0.5;
  request.causal = c.causal, request.causal_offset = c.offset, request.undefined = c.undefined;
  request.result_row = c.value_width * (c.interleaved ? c.stack : 1) + c.row_gap;
  const std::int64_t result_step = c.interleaved ? c.value_width : c.queries * request.result_row + c.result_gap;
  request.result_batch[0] = inner * result_step, request.result_batch[1] = result_step;
  const std::int64_t reach = (c.stack - 1) * result_step + (c.queries - 1) * request.result_row + c.value_width;
  const std::vector<float> result = in_all_schedules(name, [&] {
    Memory<float> output(static_cast<std::size_t>(reach), Access::kWriteFirst, "result");
    request.result = output.data;
    if (c.one_block) {
      AttentionParameters<float> p = parameters_of<float>(request);
      const std::int64_t tiles = ceil_div(c.queries, kAttentionEdge);
      p.tiles = tiles * c.stack;
      p.by_tiles = Divisor::of(tiles);
      launch_attention<float>(p, 1, nullptr);
    } else {
      attention(request, nullptr);
    }
    return std::vector<float>(output.data, output.data + output.size);
  });
  for (std::int64_t matrix = 0; matrix < c.stack; ++matrix) {
    for (std::int64_t i = 0; i < c.queries; ++i) {
      std::vector<double> weights(static_cast<std::size_t>(c.keys));
      double largest = -INFINITY, sum = 0;
      for (std::int64_t j = 0; j < c.keys; ++j) {
        double score = 0;
        for (std::int64_t k = 0; k < c.width; ++k)
          score += static_cast<double>(query->data[(matrix * c.queries + i) * c.width + k]) *
                   static_cast<double>(key->data[(matrix * c.keys + j) * c.width + k]);
        score *= 0.5;
        const auto at = static_cast<std::size_t>((matrix * c.queries + i) * c.keys + j);
        if (c.mask == AttentionMask::kAdded) score += static_cast<double>(mask->data[at]);
        if (c.mask == AttentionMask::kKeeps && flags.data[at] == 0) score = -2;
        if (c.mask == AttentionMask::kDrops && flags.data[at] != 0) score = -2;
        if (c.causal && j > i + c.offset) score = -INFINITY;
        weights[static_cast<std::size_t>(j)] = score;
        largest = std::max(largest, score);
      }
      const bool without = largest == -INFINITY;
      for (double& weight : weights) {
        weight = without ? 0 : std::exp(weight - largest);
        sum += weight;
      }
      for (std::int64_t j = 0; j < c.value_width; ++j) {
        double want = 0;
        for (std::int64_t k = 0; k < c.keys; ++k)
          want += weights[static_cast<std::size_t>(k)] *
                  static_cast<double>(value->data[(matrix * c.keys + k) * c.value_width + j]);
        const double got =
            static_cast<double>(result[static_cast<std::size_t>(matrix * result_step + i * request.result_row + j)]);
        if (without && c.keys > 0 && c.undefined == UndefinedRows::kNotANumber) {
          if (got == got) fail(std::string(name) + ": a number where a query sees nothing");
        } else {
          check(name, got, without ? 0 : want / sum, 10);
        }
      }
    }
  }
}
#endif

#if defined(PROBE_normalize_rows)
void probe_normalization(const char* name, NormalizationKind kind, std::int64_t rows, std::int64_t length,
                         std::int64_t groups, std::int64_t each, std::size_t shift = 0, bool one_block = false) {
  Normalization request;
  request.kind = kind;
  request.rows = rows;
  request.length = length;
  request.groups = groups;
  request.each = each;
  const auto elements = static_cast<std::size_t>(rows * length), parameters = static_cast<std::size_t>(groups * each);
  Memory<float> data(elements, Access::kReadOnly, "data", shift), scale(parameters, Access::kReadOnly, "scale"),
      bias(parameters, Access::kReadOnly, "bias"), mean(parameters, Access::kReadOnly, "mean"),
      variance(parameters, Access::kReadOnly, "variance");
  for (std::size_t i = 0; i < elements; ++i) data.data[i] = static_cast<float>((i * 7 + i / 37) % 23) - 4.0F;
  for (std::size_t i = 0; i < parameters; ++i) {
    scale.data[i] = static_cast<float>(i % 7) + 1.0F;
    bias.data[i] = static_cast<float>(i % 5) * 3.0F;
    mean.data[i] = static_cast<float>(i % 3);
    variance.data[i] = static_cast<float>(i % 4) + 2.0F;
  }
  request.data = data.data;
  request.scale = scale.data;
  request.bias = bias.data;
  request.mean = mean.data;
  request.variance = variance.data;
  const std::vector<float> result = in_all_schedules(name, [&] {
    Memory<float> output(elements, Access::kWriteFirst, "result", shift);
    request.result = output.data;
    if (one_block) {  // which walks the rows
      NormalizationParameters<float> p;
      p.data = data.data;
      p.scale = scale.data;
      p.bias = bias.data;
      p.result = output.data;
      p.rows = rows;
      p.length = length;
      p.each = each;
      p.by_groups = Divisor::of(groups);
      p.by_part = Divisor::of(length / each);
      p.epsilon = 1e-5F;
      launch_normalization<float>(p, 1, nullptr);
    } else {
      normalization(request, nullptr);
    }
    return std::vector<float>(output.data, output.data + output.size);
  });
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* const x = data.data + row * length;
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < length; ++i) sum += static_cast<double>(x[i]);
    double centre = kind == NormalizationKind::kCentred ? sum / static_cast<double>(length) : 0;
    for (std::int64_t i = 0; i < length; ++i)
      squares += (static_cast<double>(x[i]) - centre) * (static_cast<double>(x[i]) - centre);
    double deviation = squares / static_cast<double>(length);
    if (kind == NormalizationKind::kGiven) {
      centre = static_cast<double>(mean.data[row % groups]);
      deviation = static_cast<double>(variance.data[row % groups]);
    }
    for (std::int64_t i = 0; i < length; ++i) {
      const std::int64_t p = row % groups * each + i / (length / each);
      const double want =
          (static_cast<double>(x[i]) - centre) / std::sqrt(deviation + 1e-5) * static_cast<double>(scale.data[p]) +
          static_cast<double>(bias.data[p]);
      check(name, static_cast<double>(result[static_cast<std::size_t>(row * length + i)]), want, 10);
    }
  }
}
#endif

}  // namespace
}  // namespace tensorlint::kernels

#if defined(PROBE_move_words) || defined(PROBE_elementwise)
namespace tensorlint::kernels {

#if defined(PROBE_move_words)
Status launch_index_scan(const IndexParameters& parameters, Stream stream) {
  return launch(&scan_indices, {parameters.blocks, kThreads, 1, 0}, stream, parameters);
}
Status launch_last_updates(const LastUpdateParameters& parameters, Stream stream) {
  const auto blocks = static_cast<unsigned>((parameters.movement.tuples + kThreads - 1) / kThreads);
  return launch(&find_last_updates, {blocks, kThreads, 1, 0}, stream, parameters);
}
#endif

namespace {

#if defined(PROBE_move_words)
/// Where a serial walk finds element c of an axis with a border; -1 where only the fill is.
std::int64_t beside(Border border, std::int64_t c, std::int64_t n) {
  while (c < 0 || c >= n) {
    if (border == Border::kConstant) return -1;
    if (border == Border::kEdge) return c < 0 ? 0 : n - 1;
    if (border == Border::kWrap) {
      c = (c % n + n) % n;
    } else {
      c = c < 0 ? -c : 2 * n - 2 - c;
    }
  }
  return c;
}

/// Moves 4-byte elements, against a walk over all of them, one after the other.
void probe_move(const char* name, Movement m, const std::vector<std::int64_t>& indices = {}, std::size_t shift = 0) {
  Memory<std::uint32_t> source(static_cast<std::size_t>(m.from.elements), Access::kReadOnly, "source", shift);
  for (std::size_t i = 0; i < source.size; ++i) source.data[i] = static_cast<std::uint32_t>(i * 37 % 8191 + 5);
  Memory<std::int64_t> wide(indices.size(), Access::kReadOnly, "indices");
  Memory<std::int32_t> narrow(indices.size(), Access::kReadOnly, "narrow indices");
  for (std::size_t i = 0; i < indices.size(); ++i) {
    wide.data[i] = indices[i];
    narrow.data[i] = static_cast<std::int32_t>(indices[i]);
  }
  Memory<std::int64_t> report(2, Access::kWriteFirst, "report");
  m.source = source.data;
  m.indices = m.wide_indices ? static_cast<const void*>(wide.data) : narrow.data;
  if (!indices.empty()) m.bad_indices = report.data;
  const auto size = static_cast<std::size_t>(m.to.elements);
  std::vector<double> want(size, 0);
  std::int64_t bad = 0, first = -1, elements = 1;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::int64_t extent = m.part_extents[i % static_cast<std::size_t>(m.parts)];
    if (indices[i] >= -extent && indices[i] < extent) continue;
    first = bad++ == 0 ? static_cast<std::int64_t>(i) : first;
  }
  for (int axis = 0; axis < m.rank; ++axis) elements *= m.extents[axis];
  for (std::int64_t i = 0; i < elements; ++i) {
    std::int64_t rest = i, from = m.from.offset, to = m.to.offset, tuple = 0;
    bool is_inside = true;
    for (int axis = m.rank - 1; axis >= 0; rest /= m.extents[axis--]) {
      std::int64_t c = rest % m.extents[axis];
      to += c * m.to.strides[axis];
      tuple += c * m.index_strides[axis];
      if (m.kind == MovementKind::kPad) c = beside(m.border, c - m.before[axis], m.inside[axis]);
      is_inside = is_inside && c >= 0;
      from += c * m.from.strides[axis];
    }
    if (!indices.empty()) {
      for (int part = 0; part < m.parts; ++part) {
        const std::int64_t extent = m.part_extents[part];
        std::int64_t index = indices[static_cast<std::size_t>(tuple * m.parts + part)];
        if (index < 0) index += extent;
        is_inside = is_inside && index >= 0 && index < extent;
        (m.kind == MovementKind::kGather ? from : to) += index * m.part_strides[part];
      }
    }
    if (is_inside) {
      want[static_cast<std::size_t>(to)] = source.data[from];
    } else if (m.kind != MovementKind::kScatter) {
      want[static_cast<std::size_t>(to)] = m.kind == MovementKind::kPad ? static_cast<double>(m.fill) : 0;
    }
  }
  std::size_t bytes = 0;
  if (movement_workspace(m, &bytes) != Status::kOk) fail(std::string(name) + ": refused");
  Memory<std::uint32_t> workspace(bytes / 4, Access::kWriteFirst, "workspace");
  if (bytes > 0) zero_tickets(workspace.data, kTicketBytes, nullptr);
  const std::vector<float> result = in_all_schedules(name, [&] {
    // What a scatter leaves is 0.
    Memory<std::uint32_t> output(size, m.kind == MovementKind::kScatter ? Access::kUntracked : Access::kWriteFirst,
                                 "destination", shift);
    std::fill(output.data, output.data + size, 0U);
    m.destination = output.data;
    if (move(m, workspace.data, bytes, nullptr) != Status::kOk) fail(std::string(name) + ": refused");
    return std::vector<float>(output.data, output.data + size);
  });
  for (std::size_t i = 0; i < size; ++i) check(name, static_cast<double>(result[i]), want[i]);
  if (indices.empty()) return;
  check(name, static_cast<double>(report.data[0]), static_cast<double>(bad));
  check(name, static_cast<double>(report.data[1]), static_cast<double>(first));
}

/// Of all elements of a dense result of these extents.
Movement dense(MovementKind kind, std::vector<std::int64_t> extents, std::int64_t source) {
  Movement m;
  m.kind = kind;
  m.rank = static_cast<int>(extents.size());
  m.from.elements = source;
  m.to.elements = 1;
  for (int axis = m.rank - 1; axis >= 0; --axis) {
    m.extents[axis] = extents[static_cast<std::size_t>(axis)];
    m.to.strides[axis] = m.to.elements;
    m.to.elements *= m.extents[axis];
  }
  return m;
}

void set(std::int64_t (&to)[kMaxMovementRank], std::initializer_list<std::int64_t> from) {
  std::copy(from.begin(), from.end(), to);
}

/// Several tiles of a transpose by each block: [70, 40] matrices of 4-byte elements.
void probe_tiles_in_turn() {
  constexpr std::int64_t kRows = 70, kColumns = 40, kMatrices = 3;
  constexpr std::size_t kSize = kRows * kColumns * kMatrices;
  Memory<std::uint32_t> source(kSize, Access::kReadOnly, "source");
  for (std::size_t i = 0; i < kSize; ++i) source.data[i] = static_cast<std::uint32_t>(i * 37 % 8191 + 5);
  Movement m = dense(MovementKind::kCopy, {kMatrices, kColumns, kRows}, kSize);
  set(m.from.strides, {kRows * kColumns, 1, kColumns});
  m.source = source.data;
  const std::vector<float> result = in_all_schedules("transpose, tiles in turn", [&] {
    Memory<std::uint32_t> output(kSize, Access::kWriteFirst, "destination");
    m.destination = output.data;
    MovementParameters p;
    MovementPlan plan;
    TransposeParameters t;
    if (plan_movement(m, &p, &plan) != Status::kOk || !plan_transpose(p, plan.word, &t)) fail("not by tiles");
    if (launch_transpose<std::uint32_t>(t, 2, nullptr) != Status::kOk) fail("transpose: refused");
    return std::vector<float>(output.data, output.data + kSize);
  });
  for (std::int64_t i = 0; i < kMatrices; ++i)
    for (std::int64_t row = 0; row < kRows; ++row)
      for (std::int64_t column = 0; column < kColumns; ++column)
        check("transpose, tiles in turn",
              static_cast<double>(result[static_cast<std::size_t>((i * kColumns + column) * kRows + row)]),
              static_cast<double>(source.data[(i * kRows + row) * kColumns + column]));
}

void probe_movements() {
  probe_tiles_in_turn();
  Movement m = dense(MovementKind::kCopy, {7, 5, 70}, 2450);
  set(m.from.strides, {1, 7, 35});
  probe_move("transpose", m);
  m = dense(MovementKind::kCopy, {2, 33, 3, 70}, 2 * 3 * 70 * 33);
  set(m.from.strides, {3 * 70 * 33, 1, 70 * 33, 33});
  probe_move("transpose by tiles", m);
  probe_move("transpose by tiles, misaligned", m, {}, 1);
  m = dense(MovementKind::kCopy, {2311}, 2311);
  set(m.from.strides, {-1});
  m.from.offset = 2310;
  probe_move("reverse", m);
  m = dense(MovementKind::kCopy, {3, 1036}, 1036);
  set(m.from.strides, {0, 1});
  probe_move("stretch", m);
  probe_move("stretch, misaligned", m, {}, 1);
  m = dense(MovementKind::kPad, {9, 11}, 35);
  set(m.from.strides, {7, 1});
  set(m.inside, {5, 7});
  set(m.before, {2, 3});
  m.fill = 77;
  for (const Border border : {Border::kConstant, Border::kEdge, Border::kReflect, Border::kWrap}) {
    m.border = border;
    probe_move("pad", m);
  }
  m = dense(MovementKind::kPad, {4, 9}, 35);
  set(m.from.strides, {7, 1});
  set(m.inside, {5, 7});
  set(m.before, {-1, 2});
  probe_move("pad that cuts off", m);
  m = dense(MovementKind::kGather, {2, 5, 90}, 2 * 4 * 90);
  set(m.from.strides, {360, 0, 1});
  set(m.index_strides, {0, 1, 0});
  m.tuples = 5;
  m.part_extents[0] = 4;
  m.part_strides[0] = 90;
  probe_move("gather", m, {3, -1, 0, -4, 2});
  probe_move("gather with bad indices", m, {3, 4, 0, -5, 2});
  m.wide_indices = false;
  probe_move("gather by narrow indices", m, {1, -2, 4, 0, 3});
  m = dense(MovementKind::kGather, {1030, 3}, 6 * 5 * 3);
  set(m.from.strides, {0, 1});
  set(m.index_strides, {1, 0});
  m.tuples = 1030;
  m.parts = 2;
  set(m.part_extents, {6, 5});
  set(m.part_strides, {15, 3});
  std::vector<std::int64_t> pairs;
  for (std::int64_t i = 0; i < 2 * m.tuples; ++i) pairs.push_back(i * 7 % (i % 2 == 0 ? 6 : 5) - (i % 3 == 0 ? 3 : 0));
  probe_move("gather of tuples", m, pairs);
  pairs[2055] = 5;
  pairs[1030] = -7;
  probe_move("gather of tuples, two of them bad", m, pairs);
  m = dense(MovementKind::kScatter, {300, 4}, 1200);
  m.from.strides[0] = 4;
  m.from.strides[1] = 1;
  m.to.elements = 90 * 4;
  set(m.to.strides, {0, 1});
  set(m.index_strides, {1, 0});
  m.tuples = 300;
  m.part_extents[0] = 90;
  m.part_strides[0] = 4;
  std::vector<std::int64_t> targets;
  for (std::int64_t i = 0; i < 300; ++i) targets.push_back(i * 11 % 83 - (i % 5 == 0 ? 7 : 0));
  targets[298] = targets[299] = 3;
  probe_move("scatter with targets that come again", m, targets);
  targets[17] = targets[299] = 90;  // the last one, too: not a later update of row 0
  probe_move("scatter with a bad target", m, targets);
}
#endif

#if defined(PROBE_elementwise)
template <typename T>
double number_of(T value) {
  return static_cast<double>(widen(value));
}

/// `gap`: elements between the rows of x. (x + y) * 3 where a mask says so, else x + y and its square once more;
/// `Result` of float or of a truth value.
template <typename Result>
void probe_elements(const char* name, std::int64_t rows, std::int64_t columns, bool stretched, std::size_t shift,
                    std::int64_t gap = 0) {
  const auto size = static_cast<std::size_t>(rows * columns);
  const auto across = static_cast<std::size_t>(columns);
  const auto pitch = static_cast<std::size_t>(columns + gap);
  Memory<float> x(static_cast<std::size_t>(rows) * pitch - static_cast<std::size_t>(gap), Access::kReadOnly, "x",
                  shift);
  Memory<BFloat16> y(stretched ? across : size, Access::kReadOnly, "y", shift);
  Memory<std::uint8_t> mask(size, Access::kReadOnly, "mask", shift);
  Memory<float> one(1, Access::kReadOnly, "one element");
  one.data[0] = 0.5F;
  for (std::size_t i = 0; i < x.size; ++i) x.data[i] = static_cast<float>(i % 97) - 40.0F;
  for (std::size_t i = 0; i < size; ++i) mask.data[i] = i % 3 == 0 ? 1 : 0;
  for (std::size_t i = 0; i < y.size; ++i) y.data[i] = to_bfloat16(static_cast<float>(i % 31) * 0.5F);
  Elementwise request;
  request.rank = 2;
  request.extents[0] = rows;
  request.extents[1] = columns;
  request.operand_count = 5;
  const auto operand = [&](int k, const void* data, Dtype dtype, std::int64_t down, std::int64_t right) {
    request.operands[k].data = data;
    request.operands[k].dtype = dtype;
    request.operands[k].strides[0] = down;
    request.operands[k].strides[1] = right;
  };
  operand(0, x.data, Dtype::kFloat32, columns + gap, 1);
  operand(1, y.data, Dtype::kBFloat16, stretched ? 0 : columns, 1);
  operand(2, mask.data, Dtype::kBool, columns, 1);
  operand(3, one.data, Dtype::kFloat32, 0, 0);
  request.operands[4].is_number = true;
  request.operands[4].number = 3;
  constexpr int kStep = kMaxElementOperands;
  constexpr bool kIsTruth = sizeof(Result) == 1;
  request.steps[0] = {ElementOp::kAdd, Dtype::kFloat32, {0, 1, 0}};
  request.steps[1] = {ElementOp::kMul, Dtype::kFloat32, {kStep, kStep, 0}};
  request.steps[2] = {ElementOp::kAdd, Dtype::kFloat32, {kStep + 1, kStep, 0}};
  request.steps[3] = {ElementOp::kMul, Dtype::kFloat32, {kStep, 4, 0}};
  request.steps[4] = {ElementOp::kWhere, Dtype::kFloat32, {2, kStep + 3, kStep + 2}};
  request.steps[5] = {ElementOp::kSub, Dtype::kBFloat16, {kStep + 4, 3, 0}};
  request.steps[6] = {ElementOp::kGreater, Dtype::kBool, {kStep + 5, 4, 0}};
  request.step_count = kIsTruth ? 7 : 6;
  request.result_dtype = kIsTruth ? Dtype::kBool : Dtype::kFloat32;
  const std::vector<float> result = in_all_schedules(name, [&] {
    Memory<Result> output(size, Access::kWriteFirst, "result", shift);
    request.result = output.data;
    if (elementwise(request, nullptr) != Status::kOk) fail(std::string(name) + ": refused");
    return std::vector<float>(output.data, output.data + size);
  });
  for (std::size_t i = 0; i < size; ++i) {
    const double sum =
        static_cast<double>(x.data[i / across * pitch + i % across]) + number_of(y.data[stretched ? i % across : i]);
    const double chosen = (mask.data[i] != 0 ? sum * 3 : sum * sum + sum) - 0.5;
    const double rounded = number_of(to_bfloat16(static_cast<float>(chosen)));
    check(name, static_cast<double>(result[i]), kIsTruth ? (rounded > 3 ? 1.0 : 0.0) : rounded);
  }
}
#endif

}  // namespace
}  // namespace tensorlint::kernels
#endif

int main(int argc, char** argv) {
  using namespace tensorlint::kernels;
  const std::string only = argc > 1 ? argv[1] : "";
  const auto wanted = [&](const char* kernel) { return only.empty() || only == kernel; };
#if defined(PROBE_reduce_rows)
  if (wanted("reduce_rows")) {
    probe_reduction("lanes", {19, 41, 1}, 0);
    probe_reduction("block", {3, 5203, 1}, 0);
    probe_reduction("block, a batch that would end late", {2, 3603, 1}, 0);
    probe_reduction("misaligned block", {2, 2101, 1}, 0, 1);
    probe_reduction("row splits, more than threads", {1, 1203, 1}, 1);
    probe_reduction("splits of 3 rows", {3, 5000, 1}, 512);
    probe_segments(40, 3, 210, 0);
    probe_segments(40, 3, 210, 1);
    probe_segments(5, 2, 1028, 0);
    probe_segments(3, 2, 1028, 0);
    probe_segments(34, 3, 210, 1);
    probe_reduction("several rows each", {700, 12, 1}, 0, 0, 3);
    probe_reduction("lanes with a rest", {70, 523, 1}, 0);
    for (const std::size_t shift : {1U, 2U, 3U}) probe_reduction("misaligned batches", {2, 5203, 1}, 0, shift);
  }
#endif
#if defined(PROBE_reduce_columns)
  if (wanted("reduce_columns")) {
    probe_reduction("columns", {1, 35, 96}, 0);
    probe_reduction("odd columns", {1, 50, 7}, 0);
    probe_reduction("column groups", {9, 5, 3}, 0);
    probe_reduction("misaligned columns", {2, 40, 8}, 0, 1);
    probe_reduction("column splits", {1, 1500, 8}, 700);
    probe_reduction("splits of 3 sets of columns", {3, 330, 12}, 128);
    probe_reduction("more splits than four for each part", {1, 4000, 8}, 16);
    probe_reduction("more columns than threads", {1, 90, 1200}, 16);
    probe_reduction("splits of 2 tiles", {1, 50, 160}, 16);
    probe_columns_of_bytes(90, 48, 0);
    probe_columns_of_bytes(40, 528, 16);
    probe_reduction("columns of 3, in lines of 4 rows", {2, 1035, 3}, 0);
    probe_reduction("splits of columns of 3", {2, 4035, 3}, 340);
    probe_reduction("rows that are no whole vectors", {2, 51, 35}, 0);
    probe_reduction("the same in splits", {1, 151, 35}, 28);
    probe_reduction("the same in batches", {1, 112, 35}, 0);
    probe_reduction("levels that several threads add", {3, 700, 4}, 0);
    probe_segments(37, 16, 49, 0);
    probe_segments(9, 128, 5, 1);
  }
#endif
#if defined(PROBE_move_words)
  if (wanted("move_words")) probe_movements();
#endif
#if defined(PROBE_elementwise)
  if (wanted("elementwise")) {
    probe_elements<float>("elements", 3, 4096, false, 0);
    probe_elements<float>("elements, misaligned, a last part of a tile", 5, 821, false, 1);
    probe_elements<float>("a row stretched over rows", 9, 512, true, 0);
    probe_elements<float>("an odd row stretched over rows", 37, 111, true, 0);
    probe_elements<float>("a slice of longer rows", 5, 520, false, 0, 16);
    probe_elements<std::uint8_t>("truth values", 3, 4096, false, 0);
    probe_elements<std::uint8_t>("truth values of a part of a tile", 1, 1003, false, 1);
  }
#endif
#if defined(PROBE_class_rows)
  if (wanted("class_rows")) {
    probe_classes("class lanes", {70, 26, 1, kPartBytes, 3});
    probe_classes("class lanes of one vector", {30, 5, 1, kPartBytes, 1});
    probe_classes("class block", {7, 3603, 1, kPartBytes, 2});
    probe_classes("class block, misaligned, with smoothing",
                  {4, 701, 1, kPartBytes, 2, ClassTask::kIndices, 0.1F, 90, 1});
    probe_classes("streamed class block", {3, 3603, 1, 512, 2, ClassTask::kIndices, 0, 80});
    probe_classes("class cluster", {7, 602, 1, 1024, 2});
    probe_classes("class cluster, streamed", {3, 2050, 1, 16, 1});
    probe_classes("class probabilities", {5, 603, 1, kPartBytes, 2, ClassTask::kProbabilities});
    for (const std::size_t shift : {1U, 2U, 3U}) {
      probe_classes("class block, misaligned, batches", {3, 5203, 1, kPartBytes, 1, ClassTask::kIndices, 0, 90, shift});
    }
    probe_classes("class rows by warps", {21, 302, 1, kPartBytes, 1, ClassTask::kIndices, 0, 90, 0, true});
    probe_classes("class cluster, misaligned", {7, 605, 1, 1024, 2, ClassTask::kIndices, 0, 90, 1});
    probe_classes("class row of 48 KiB", {1, 12288, 1, kPartBytes, 1});
  }
#endif
#if defined(PROBE_class_columns)
  if (wanted("class_columns")) {
    probe_classes("class columns", {3, 21, 41, kPartBytes, 2});
    probe_classes("class vector columns", {4, 67, 100, kPartBytes, 2});
    probe_classes("class vector columns with smoothing", {2, 67, 12, kPartBytes, 1, ClassTask::kIndices, 0.1F});
    probe_classes("class columns, misaligned", {2, 11, 8, kPartBytes, 1, ClassTask::kIndices, 0, 90, 1});
    probe_classes("class columns of probabilities", {2, 67, 100, kPartBytes, 2, ClassTask::kProbabilities});
  }
#endif
#if defined(PROBE_softmax_gradient)
  if (wanted("softmax_gradient")) {
    probe_softmax_gradient("softmax gradient lanes", 19, 42, 1);
    probe_softmax_gradient("softmax gradient block", 5, 2701, 1);
    probe_softmax_gradient("softmax gradient columns", 5, 67, 41);
    probe_softmax_gradient("softmax gradient vector columns", 3, 67, 100);
  }
#endif
#if defined(PROBE_scan_labels)
  if (wanted("scan_labels")) {
    probe_labels(3, 3001, 0);
    probe_labels(1, 1801, 0);  // a batch that would end one vector late
    probe_labels(2, 1801, 1);
    probe_labels(kThreads + 3, 2 * kThreads * (kThreads + 2) + 9, 0);
  }
#endif
#if defined(PROBE_cosine_embedding)
  if (wanted("cosine_embedding")) {
    probe_cosine("cosine lanes", 62);
    probe_cosine("cosine block", 2703);
    probe_cosine("cosine block, a batch that would end late", 1203);
  }
#endif
#if defined(PROBE_pointwise_loss)
  if (wanted("pointwise_loss")) {
    probe_pointwise("pointwise", 6151, 400, 0);
    probe_pointwise("misaligned pointwise", 4099, 512, 1);
    probe_pointwise("more blocks of pointwise than threads", 1103, 1, 0);
  }
#endif
#if defined(PROBE_negative_log_likelihood)
  if (wanted("negative_log_likelihood")) {
    probe_likelihood("likelihood", 1100, 7, 1, 0);
    probe_likelihood("misaligned likelihood of columns", 3, 7, 41, 1);
  }
#endif
#if defined(PROBE_multiply_matrices)
  if (wanted("multiply_matrices")) {
    probe_product("product, vectors along k", 67, 5, 19, 1, 9, {20}, {20, true}, {8});
    probe_product("product, vectors along positions", 67, 66, 19, 1, 2, {68, true}, {68}, {66});
    probe_product("product of odd rows", 5, 67, 35, 1, 9, {35}, {67}, {67});
    probe_product("product of odd rows, turned", 67, 7, 18, 1, 9, {67, true}, {18, true}, {7});
    probe_product("product, misaligned", 5, 8, 16, 1, 9, {16, false, {}, 1}, {8, false, {}, 1}, {8});
    probe_product("product in large tiles", 130, 5, 21, 2, 1, {24}, {8}, {5});
    probe_product("stack", 3, 4, 8, 1, 2, {8, false, {24, 48}}, {4, false, {32, 0}}, {4, false, {12, 24}}, {2, 2});
    probe_product("plain stack", 3, 4, 8, 1, 9, {8, false, {24}}, {4, false, {32}}, {4, false, {12}}, {2});
    probe_product("stack of two axes that are not one", 3, 4, 8, 1, 9, {8, false, {24, 48}}, {4, false, {32, 64}},
                  {4, false, {12, 24}}, {2, 2});
    probe_product("stack with one b, folded", 40, 4, 8, 1, 9, {8, false, {320}}, {4, false, {0}}, {4, false, {160}},
                  {3});
    probe_product("stack with one b, turned a", 4, 4, 8, 1, 9, {4, true, {32}}, {4, false, {0}}, {4, false, {16}}, {3});
    probe_product("stack with one b and one addend", 4, 4, 8, 1, 9, {8, false, {32}}, {4, false, {0}}, {4, false, {0}},
                  {3});
    probe_product("stack of odd strides", 4, 4, 8, 1, 9, {8, false, {33}}, {4, false, {33}}, {4, false, {16}}, {3});
    probe_product("stack of odd strides, turned", 4, 4, 8, 1, 9, {4, true, {33}}, {8, true, {33}}, {4, false, {16}},
                  {3});
  }
#endif
#if defined(PROBE_convolve_tiles)
  if (wanted("convolve_tiles")) {
    probe_convolution("convolution", 3, 5, 1, {5, 5, 3, 1, 1, 1, 1}, {6, 6, 3, 1, 1, 1, 1});
    probe_convolution("convolution of groups", 4, 10, 2, {9, 5, 2, 2, 1, 1, 0}, {17, 14, 3, 1, 2, 0, 1});
    probe_convolution("convolution of odd filters", 1, 67, 1, {1, 1, 1}, {13, 10, 5, 1, 1, 1, 0});
    probe_convolution("convolution of every other element", 4, 4, 1, {5, 3, 1, 2}, {5, 3, 1, 2});
    probe_convolution("convolution of single elements, padded", 4, 4, 1, {3, 3, 1}, {3, 5, 1, 1, 1, 1, 1});
    probe_convolution("convolution of single elements that skips the last", 4, 4, 1, {3, 3, 1}, {5, 4, 1});
    probe_convolution("convolution of single elements, shifted", 4, 4, 1, {3, 3, 1}, {5, 5, 1, 1, 1, 1, 0});
    probe_convolution("convolution, every window twice as far", 4, 4, 1, {3, 3, 1}, {3, 3, 1, 2, 1, 0, 2});
  }
#endif
#if defined(PROBE_convolve_few_filters)
  if (wanted("convolve_few_filters")) {
    probe_convolution("depthwise convolution", 5, 5, 5, {7, 7, 3, 1, 1, 1, 1}, {6, 6, 3, 1, 1, 1, 1});
    probe_convolution("convolution of few filters", 6, 4, 2, {7, 3, 2, 2, 2, 0, 0}, {9, 5, 3, 2, 1, 1, 1});
  }
#endif
#if defined(PROBE_pool_windows)
  if (wanted("pool_windows")) {
    for (const PoolingKind kind : {PoolingKind::kMax, PoolingKind::kAverage, PoolingKind::kAverageWithPadding}) {
      probe_pool("pool", kind, {7, 4, 3, 2, 1, 1, 1}, {9, 9, 3, 1, 1, 1, 1});
      probe_pool("pool past its padding", kind, {7, 4, 3, 2, 1, 1, 0}, {9, 4, 2, 3, 2, 1, 1});
    }
  }
#endif
#if defined(PROBE_attend_tiles)
  if (wanted("attend_tiles")) {
    const auto added = AttentionMask::kAdded;
    probe_attention("attention", {66, 70, 24, 20, 2, added});
    probe_attention("attention of odd widths, walked by one block",
                    {66, 67, 9, 7, 2, AttentionMask::kKeeps, false, 0, UndefinedRows::kNotANumber, true, 0, true});
    probe_attention("attention along two axes", {3, 5, 4, 7, 4});
    probe_attention("attention of wide heads", {3, 65, 65, 66, 1, AttentionMask::kDrops});
    probe_attention("attention, causal", {67, 140, 8, 4, 1, added, true, 2});
    probe_attention("attention, causal, first queries see nothing",
                    {67, 70, 8, 4, 1, AttentionMask::kNone, true, -3, UndefinedRows::kZeroWithoutKeys});
    probe_attention("attention, causal, first queries are 0 / 0", {5, 70, 8, 4, 1, AttentionMask::kNone, true, -3});
    for (const UndefinedRows undefined :
         {UndefinedRows::kNotANumber, UndefinedRows::kZeroWithoutKeys, UndefinedRows::kZero})
      probe_attention("attention, nothing in the first step",
                      {3, 130, 4, 8, 2, added, false, 0, undefined, false, 4, false, true});
    probe_attention("attention, matrices of results at odd places",
                    {3, 5, 4, 8, 2, added, false, 0, UndefinedRows::kNotANumber, false, 1});
    probe_attention("attention, odd rows of results",
                    {3, 5, 4, 4, 3, added, false, 0, UndefinedRows::kNotANumber, true});
    AttentionProbe gaps{3, 5, 4, 7, 2};
    gaps.row_gap = 1;
    probe_attention("attention, odd rows of results with gaps", gaps);
    gaps.queries = 5, gaps.row_gap = 0, gaps.result_gap = 1;
    probe_attention("attention, odd rows of matrices at even places", gaps);
    probe_attention("attention without keys", {3, 0, 4, 4, 1});
  }
#endif
#if defined(PROBE_normalize_rows)
  if (wanted("normalize_rows")) {
    const auto centred = NormalizationKind::kCentred;
    probe_normalization("normalization by lanes", centred, 9, 62, 1, 62);
    probe_normalization("normalization of short rows", centred, 70, 5, 1, 5);
    probe_normalization("normalization by block", centred, 3, 3603, 1, 3603);
    probe_normalization("normalization by block, misaligned", centred, 2, 701, 2, 1, 1);
    probe_normalization("normalization of rows that a block walks", centred, 3, 701, 1, 701, 0, true);
    probe_normalization("normalization of groups", centred, 4, 60, 2, 3);
    probe_normalization("normalization of odd groups", centred, 4, 30, 2, 5);
    probe_normalization("root mean square", NormalizationKind::kRootMeanSquare, 5, 131, 1, 131);
    probe_normalization("given statistics", NormalizationKind::kGiven, 12, 33, 4, 1);
  }
#endif
  return 0;
}

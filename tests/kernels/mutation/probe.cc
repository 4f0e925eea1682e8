// What the mutation run executes: few instances, every synchronisation structure, several schedules. Prints the first
// complaint and exits 1 on a result that differs from the serial reference or between schedules, or on anything the
// emulator says.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/common/workspace.h"
#include "kernels/loss/dispatch.h"
#include "kernels/reduction/kernels.h"

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
  Memory(std::size_t count, Access access, const char* name) : values(count + 16 / sizeof(T)) {
    data = reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(values.data()) + 15) / 16 * 16);
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
    if (std::memcmp(result.data(), first.data(), result.size() * sizeof(float)) != 0)
      fail(std::string(name) + ": results differ between schedules");
  }
  return first;
}

void check(const char* name, double got, double want) {
  if (!(std::fabs(got - want) <= 1e-4 * std::fabs(want) + 1e-6))
    fail(std::string(name) + ": " + std::to_string(got) + " for " + std::to_string(want));
}

void probe_reduction(const char* name, std::vector<std::int64_t> extents, std::vector<int> axes) {
  using Accumulator = Sum<float, Term::kValue>;
  ReductionParameters p;
  fold_axes(extents.data(), static_cast<int>(extents.size()), axes.data(), static_cast<int>(axes.size()), &p.axes);
  plan_reduction(p.axes, 4, sizeof(float), &p.plan);
  const std::int64_t total = p.axes.results() * p.axes.elements_each();
  Memory<float> input(static_cast<std::size_t>(total), Access::kReadOnly, "input");
  for (std::size_t i = 0; i < input.size; ++i) input.data[i] = static_cast<float>(i % 113) * 0.37F + 1.0F;
  Memory<unsigned> workspace(p.plan.workspace_bytes / 4, Access::kWriteFirst, "workspace");
  zero_tickets(workspace.data, p.plan.workspace_bytes, nullptr);
  p.input = input.data;
  p.tickets = tickets_of(workspace.data);
  p.partials = scratch_of(workspace.data);
  p.elements_each = p.axes.elements_each();
  const std::vector<float> result = in_all_schedules(name, [&] {
    Memory<float> output(static_cast<std::size_t>(p.axes.results()), Access::kWriteFirst, "output");
    p.output = output.data;
    launch_reduction<Accumulator>(p, nullptr);
    return std::vector<float>(output.data, output.data + output.size);
  });
  double got = 0, want = 0;
  for (const float x : result) got += static_cast<double>(x);
  for (std::size_t i = 0; i < input.size; ++i) want += static_cast<double>(input.data[i]);
  check(name, got, want);
  for (std::size_t r = 0; r < result.size() && p.axes.inner_reduced && p.axes.outer_reduced == 1; ++r) {
    double row = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(p.axes.inner); ++i)
      row += static_cast<double>(input.data[r * static_cast<std::size_t>(p.axes.inner) + i]);
    check(name, static_cast<double>(result[r]), row);
  }
}

void probe_classes(const char* name, std::int64_t rows, std::int64_t classes, std::int64_t inner,
                   std::size_t part_bytes, unsigned blocks) {
  ClassParameters<float> p;
  plan_class_rows(rows, classes, 4, true, 90, part_bytes, &p.plan);
  if (inner > 1) {
    plan_class_columns(rows, classes, inner, 4, &p.plan);
    p.by_inner = Divisor::of(inner);
  }
  p.plan.blocks = blocks * p.plan.cluster;
  const auto positions = static_cast<std::size_t>(rows * inner),
             elements = positions * static_cast<std::size_t>(classes);
  Memory<float> logits(elements, Access::kReadOnly, "logits");
  for (std::size_t i = 0; i < elements; ++i) logits.data[i] = static_cast<float>(i * 7919 % 1000) * 0.01F;
  Memory<std::int64_t> labels(positions, Access::kReadOnly, "labels");
  for (std::size_t i = 0; i < positions; ++i)
    labels.data[i] = i % 5 == 2 ? -100 : static_cast<std::int64_t>(i * 31) % classes;
  Memory<double> partials(p.plan.blocks, Access::kWriteFirst, "partials");
  Memory<unsigned> ticket(1, Access::kReadWrite, "ticket");
  ticket.data[0] = 0;
  p.logits = logits.data;
  p.labels.data = labels.data;
  p.rows = rows;
  p.classes = classes;
  p.inner = inner;
  p.partials = partials.data;
  p.ticket = ticket.data;
  const Geometry geometry = {p.plan.blocks, kThreads, p.plan.cluster, p.plan.shared_bytes};
  const std::vector<float> result = in_all_schedules(name, [&] {
    Memory<float> output(elements, Access::kWriteFirst, "output"), total(1, Access::kWriteFirst, "total");
    p.output = output.data;
    p.total = total.data;
    launch(inner == 1 ? &class_rows<ClassTask::kIndices, float> : &class_columns<ClassTask::kIndices, float>, geometry,
           nullptr, p);
    std::vector<float> all(output.data, output.data + output.size);
    all.push_back(total.data[0]);
    return all;
  });
  double want = 0;
  for (std::size_t position = 0; position < positions; ++position) {
    if (labels.data[position] < 0) continue;
    const std::size_t in = static_cast<std::size_t>(inner), c = static_cast<std::size_t>(classes);
    const std::size_t start = position / in * c * in + position % in;
    double sum = 0;
    for (std::size_t k = 0; k < c; ++k) sum += std::exp(static_cast<double>(logits.data[start + k * in]));
    want +=
        std::log(sum) - static_cast<double>(logits.data[start + static_cast<std::size_t>(labels.data[position]) * in]);
  }
  check(name, static_cast<double>(result.back()), want);
}

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
  double dot = 0;
  const std::size_t in = static_cast<std::size_t>(inner);
  for (std::size_t k = 0; k < static_cast<std::size_t>(classes); ++k)
    dot += static_cast<double>(y.data[k * in]) * static_cast<double>(g.data[k * in]);
  check(name, static_cast<double>(result[in]),
        static_cast<double>(y.data[in]) * (static_cast<double>(g.data[in]) - dot));
}

void probe_labels() {
  LabelParameters<float> p;
  Memory<std::int64_t> labels(3000, Access::kReadOnly, "labels");
  for (std::size_t i = 0; i < labels.size; ++i) labels.data[i] = static_cast<std::int64_t>(i % 12) - 1;
  Memory<double> summary(3, Access::kWriteFirst, "summary"), partials(9, Access::kWriteFirst, "partials");
  Memory<std::int64_t> report(2, Access::kWriteFirst, "report");
  Memory<unsigned> ticket(1, Access::kReadWrite, "ticket");
  ticket.data[0] = 0;
  p.labels.data = labels.data;
  p.summary = reinterpret_cast<LabelSummary*>(summary.data);
  p.partials = reinterpret_cast<LabelSummary*>(partials.data);
  p.report = report.data;
  p.ticket = ticket.data;
  p.positions = 3000;
  p.classes = 10;
  p.blocks = 3;
  const std::vector<float> result = in_all_schedules("labels", [&] {
    launch(&scan_labels<float>, {3, kThreads, 1, 0}, nullptr, p);
    return std::vector<float>{static_cast<float>(summary.data[0]), static_cast<float>(report.data[0]),
                              static_cast<float>(report.data[1])};
  });
  check("labels", static_cast<double>(result[0]), 2500);
  check("labels", static_cast<double>(result[1]), 500);
}

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
    p.total = total.data;
    p.first_gradient = gradient.data;
    launch(&cosine_embedding<float>, {blocks, kThreads, 1, 0}, nullptr, p);
    std::vector<float> all(gradient.data, gradient.data + gradient.size);
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
    want += 1 - dot / std::sqrt(aa * bb);
  }
  check(name, static_cast<double>(result.back()), want);
}

}  // namespace
}  // namespace tensorlint::kernels

int main() {
  using namespace tensorlint::kernels;
  probe_reduction("lanes", {19, 40}, {1});
  probe_reduction("block", {3, 2100}, {1});
  probe_reduction("row splits", {40000}, {0});
  probe_reduction("columns", {50, 96}, {0});
  probe_reduction("odd columns", {50, 7}, {0});
  probe_reduction("column splits", {4300, 8}, {0});
  probe_classes("class lanes", 70, 24, 1, kPartBytes, 3);
  probe_classes("class block", 7, 600, 1, kPartBytes, 2);
  probe_classes("class cluster", 7, 600, 1, 1024, 2);
  probe_classes("class columns", 3, 20, 41, kPartBytes, 2);
  probe_classes("class vector columns", 4, 20, 100, kPartBytes, 2);
  probe_softmax_gradient("softmax gradient lanes", 5, 40, 1);
  probe_softmax_gradient("softmax gradient block", 5, 700, 1);
  probe_softmax_gradient("softmax gradient columns", 5, 20, 41);
  probe_softmax_gradient("softmax gradient vector columns", 3, 20, 100);
  probe_labels();
  probe_cosine("cosine lanes", 60);
  probe_cosine("cosine block", 700);
  return 0;
}

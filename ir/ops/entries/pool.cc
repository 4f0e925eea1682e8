// Pools. Source: ONNX MaxPool (1 to 22), AveragePool (1 to 22), LpPool (1 to 22), GlobalAveragePool, GlobalMaxPool,
// GlobalLpPool.
#include <algorithm>
#include <cmath>

#include "ir/ops/windows.h"

namespace tensorlint::ops {
namespace {

void pool(Inference& in) {
  const auto shape = pool_shape(in);
  for (std::size_t i = 0; shape && i < in.result_count(); ++i) in.set_shape(static_cast<int>(i), *shape);
}

/// The second result holds flat indices into the operand, which count no padding.
void max_pool(Inference& in) {
  pool(in);
  if (in.result_count() < 2) return;
  const auto data = in.shape(0);
  const Bounds count = data ? in.dims().bounds(element_count(in.dims(), *data)) : Bounds{0, INT64_MAX};
  if (count.hi < (std::int64_t{1} << 53))
    in.set_range(1, {0, static_cast<double>(std::max<std::int64_t>(count.hi - 1, 0)), false});
}

void lp_pool(Inference& in) {
  pool(in);
  in.set_range(0, {0, HUGE_VAL, true});
}

void global_pool(Inference& in) {
  if (const auto shape = global_pool_shape(in)) in.set_shape(0, *shape);
}

/// A maximum of at least one element stays within the operand's range. (An average rounds, and may overflow on its
/// way.)
void global_max_pool(Inference& in) {
  global_pool(in);
  const auto data = in.shape(0);
  const bool filled = data && data->size() > 2 && std::all_of(data->begin() + 2, data->end(), [&](Dim dim) {
                        return in.dims().bounds(dim).lo >= 1;
                      });
  if (filled) in.set_range(0, in.operand(0).range);
}

void global_lp_pool(Inference& in) {
  global_pool(in);
  in.set_range(0, {0, HUGE_VAL, true});
}

OpEntry pool_entry(std::string_view name, InferFunction function) {
  return OpEntry(name)
      .infer(function)
      .constraint(kWindowAttributes)
      .constraint(kWindowPadding)
      .constraint(kWindowRank)
      .constraint(kWindowFits);
}

const RegisterOps kRegisterPool{
    pool_entry("MaxPool", max_pool),
    pool_entry("AveragePool", pool),
    pool_entry("LpPool", lp_pool),
    OpEntry("GlobalAveragePool").infer(global_pool).constraint(kWindowRank),
    OpEntry("GlobalMaxPool").infer(global_max_pool).constraint(kWindowRank),
    OpEntry("GlobalLpPool").infer(global_lp_pool).constraint(kWindowRank),
};

}  // namespace
}  // namespace tensorlint::ops

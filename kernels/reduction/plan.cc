#include "kernels/reduction/plan.h"

#include <algorithm>
#include <numeric>

#include "kernels/common/combine.h"
#include "kernels/common/request.h"
#include "kernels/common/workspace.h"

namespace tensorlint::kernels {
namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 62;
constexpr std::int64_t kMaxBlocks = (std::int64_t{1} << 31) - 1;

// 4 loads in flight for each thread: below this a block does not fill its own latency.
constexpr std::int64_t kUnitsPerStep = std::int64_t{kThreads} * 4;
// 64 KiB a block: about 2 us of one SM's share of the bandwidth, so that the last wave of blocks costs little. Where
// there are blocks enough twice that, then starting them costs less; half as much again for states of more than two
// words, of which fewer blocks fit an SM.
constexpr std::int64_t kUnitsPerSplit = kUnitsPerStep * 4;
constexpr std::int64_t kManyBlocks = 512;
// Blocks that a grid aims at where results are few: 16 for each of the 132 SMs of the largest part in view, as a power
// of two.
constexpr std::int64_t kWantedBlocks = 2048;
// One block combines the partial states of a result; 16384 are 64 for each of its threads.
constexpr std::int64_t kMaxRowSplits = 16384;
constexpr std::int64_t kMaxColumnSplits = 256;
// The same of columns, whose blocks end with more work: two or four an SM, each with 8 loads a thread under way.
constexpr std::int64_t kWantedColumnBlocks = 512;
constexpr std::int64_t kColumnBatch = 8;
// Rows that are split are at most half as many as splits; tiles of columns are split below kWantedBlocks.
static_assert(kMaxRowSplits / 2 <= static_cast<std::int64_t>(kMaxTickets));
static_assert(kWantedColumnBlocks <= static_cast<std::int64_t>(kMaxTickets));

unsigned power_of_two_from(std::int64_t x) {
  unsigned power = 1;
  while (power < x) power *= 2;
  return power;
}

bool multiply(std::int64_t a, std::int64_t b, std::int64_t* product) {
  return !__builtin_mul_overflow(a, b, product) && *product <= kMaxElements;
}

Status plan_rows(const FoldedAxes& folded, int vector_size, std::size_t state_bytes, ReductionPlan* plan) {
  const std::int64_t rows = folded.outer_kept;
  const std::int64_t units = folded.outer_reduced * ceil_div(folded.inner, vector_size);
  plan->split_length = units;
  plan->segment_units = Divisor::of(ceil_div(folded.inner, vector_size));
  // A warp a row, or fewer lanes: each has up to 4 loads, all under way at once, and where there are rows enough to
  // fill the device up to 64: a block would read them in few rounds and then wait at its barriers. 4 lanes at least: 64
  // neighbouring bytes.
  if (units <= std::int64_t{kWarpLanes} * (rows >= kWantedBlocks ? 64 : 4)) {
    plan->lanes = std::clamp(power_of_two_from(ceil_div(units, 4)), std::min(power_of_two_from(units), 4U), kWarpLanes);
    std::int64_t blocks = ceil_div(rows, kThreads / plan->lanes);
    // Short rows: several each, up to 16 loads a thread, as long as there are blocks enough.
    const std::int64_t loads = std::max<std::int64_t>(1, ceil_div(units, plan->lanes));
    plan->rows_each =
        static_cast<unsigned>(std::max<std::int64_t>(1, std::min(16 / loads, blocks / (2 * kManyBlocks))));
    blocks = ceil_div(blocks, plan->rows_each);
    if (blocks > kMaxBlocks) return Status::kBadShape;
    plan->blocks = static_cast<unsigned>(blocks);
    return Status::kOk;
  }
  plan->lanes = kThreads;
  const std::int64_t large = state_bytes <= 8 ? 2 * kUnitsPerSplit : kUnitsPerSplit + kUnitsPerSplit / 2;
  const std::int64_t part = rows * (units / large) >= kManyBlocks ? large : kUnitsPerSplit;
  std::int64_t splits =
      std::min({ceil_div(units, part), kMaxRowSplits, std::max<std::int64_t>(1, kMaxRowSplits / rows)});
  plan->split_length = ceil_div(ceil_div(units, splits), kUnitsPerStep) * kUnitsPerStep;
  splits = ceil_div(units, plan->split_length);
  plan->splits = static_cast<unsigned>(splits);
  std::int64_t blocks = 0;
  if (!multiply(rows, splits, &blocks) || blocks > kMaxBlocks) return Status::kBadShape;
  plan->blocks = static_cast<unsigned>(blocks);
  if (splits > 1) {
    plan->workspace_bytes = kTicketBytes + static_cast<std::size_t>(blocks) * state_bytes;
  }
  return Status::kOk;
}

/// The axes as columns of whole vectors, of which each result is made of `merge`: side by side, where short segments of
/// several results are one line, or a row of results apart, where as many rows as fill whole vectors are one.
/// Their units make up tiles of the number that is returned, or of its multiples; 0 where columns stay as they are.
std::int64_t regroup_columns(const FoldedAxes& folded, int vector_size, ReductionPlan* plan) {
  FoldedAxes& columns = plan->columns;
  if (folded.inner_reduced) {
    // A short segment begins and ends in sectors that belong to the results beside it.
    const int last = folded.kept.groups - 1;
    if (last < 0 || folded.reduced.groups == 0 || folded.inner < vector_size) return 0;
    const std::int64_t neighbours = folded.kept.extents[last].value;
    const std::int64_t units = std::lcm<std::int64_t>(folded.inner, vector_size) / vector_size;
    std::int64_t line = 0;
    if (units > kThreads || !multiply(neighbours, folded.inner, &line) || line % vector_size != 0) return 0;
    plan->merge = static_cast<unsigned>(folded.inner);
    columns.inner_reduced = false;
    columns.inner = line;
    columns.outer_kept = folded.outer_kept / neighbours;
    columns.kept.groups = last;
    return units;
  }
  const std::int64_t rows = vector_size / std::gcd<std::int64_t>(folded.inner, vector_size);
  const std::int64_t units = folded.inner * rows / vector_size;
  if (rows == 1 || folded.inner > kThreads || units > kThreads || folded.reduced.groups != 1 ||
      folded.outer_reduced < rows * 64)
    return 0;
  plan->merge = static_cast<unsigned>(rows);
  plan->merged_apart = true;
  plan->rest = folded.outer_reduced % rows * folded.inner;
  columns.inner = folded.inner * rows;
  columns.outer_reduced = folded.outer_reduced / rows;
  columns.reduced.extents[0] = Divisor::of(columns.outer_reduced);
  columns.reduced.strides[0] = columns.inner;
  return units;
}

Status plan_columns(const FoldedAxes& folded, int vector_size, std::size_t state_bytes, std::int64_t merged_units,
                    ReductionPlan* plan) {
  const FoldedAxes& columns = plan->columns;
  plan->by_columns = true;
  // Vectors that are spliced are worth it from a few of them on.
  plan->width = columns.inner % vector_size == 0 || columns.inner >= std::int64_t{vector_size} * 8 ? vector_size : 1;
  const std::int64_t units = ceil_div(columns.inner, plan->width);
  const std::int64_t length = columns.outer_reduced;

  // The number of tiles that leaves the fewest threads idle; of equals the most tiles, down to one warp across. From 64
  // warps on the last, partial tile no longer matters.
  double best = -1.0;
  const auto try_tile = [&](std::int64_t tiles, std::int64_t tile, double gain) {
    const std::int64_t depth = kThreads / tile;
    const double busy =
        static_cast<double>(units) * static_cast<double>(depth) / static_cast<double>(tiles * std::int64_t{kThreads});
    if (busy >= best * gain) {
      best = busy;
      plan->tiles = tiles;
      plan->tile = static_cast<unsigned>(tile);
    }
  };
  if (merged_units > 0) {
    // Of all results in a tile all columns. The wider, the fewer sectors are another tile's, too: worth some threads.
    for (std::int64_t tile = kThreads / merged_units * merged_units; tile > 0; tile -= merged_units)
      if (tile <= units) try_tile(ceil_div(units, tile), tile, 1.05);
  } else {
    const std::int64_t fewest = ceil_div(units, kThreads);
    const std::int64_t most = ceil_div(units, kWarpLanes);
    for (std::int64_t tiles = most > 64 ? most : fewest; tiles <= most; ++tiles)
      try_tile(tiles, ceil_div(units, tiles), 1.0);
    // Where blocks would be few: narrower tiles, down to 128 bytes, as long as that leaves the most splits.
    const std::int64_t narrowest = plan->width == 1 ? std::int64_t{vector_size} * 8 : 8;
    while (columns.outer_kept * plan->tiles * kMaxColumnSplits < kWantedColumnBlocks && plan->tile >= 2 * narrowest &&
           length / (std::int64_t{kThreads} / (plan->tile / 2) * 16) >= kMaxColumnSplits) {
      plan->tile /= 2;
      plan->tiles = ceil_div(units, plan->tile);
    }
  }
  const std::int64_t room = kThreads / plan->tile;
  plan->depth = static_cast<unsigned>(std::clamp<std::int64_t>(length, 1, room));
  plan->groups =
      static_cast<unsigned>(plan->tiles == 1 ? std::min<std::int64_t>(room / plan->depth, columns.outer_kept) : 1);
  plan->split_length = length;

  std::int64_t blocks = 0;
  if (!multiply(ceil_div(columns.outer_kept, plan->groups), plan->tiles, &blocks)) return Status::kBadShape;
  if (plan->groups == 1 && blocks < kWantedColumnBlocks) {
    const std::int64_t step = std::int64_t{plan->depth} * kColumnBatch;
    // At least 2 rounds of 8 loads a block, else combining costs more than it spreads.
    const std::int64_t wanted =
        std::min({ceil_div(kWantedColumnBlocks, blocks), length / (step * 2), kMaxColumnSplits});
    if (wanted > 1) {
      plan->split_length = ceil_div(ceil_div(length, wanted), step) * step;
      plan->splits = static_cast<unsigned>(ceil_div(length, plan->split_length));
    }
  }
  if (!multiply(blocks, plan->splits, &blocks) || blocks > kMaxBlocks) return Status::kBadShape;
  plan->blocks = static_cast<unsigned>(blocks);
  if (plan->splits > 1) {
    plan->workspace_bytes = kTicketBytes + static_cast<std::size_t>(folded.results()) * plan->splits * state_bytes;
  }
  return Status::kOk;
}

}  // namespace

Status fold_axes(const std::int64_t* extents, int rank, const int* axes, int axis_count, FoldedAxes* folded) {
  constexpr int kMaxRank = 64;
  if (rank < 0 || rank > kMaxRank || axis_count < 0 || (rank > 0 && extents == nullptr) ||
      (axis_count > 0 && axes == nullptr)) {
    return Status::kBadShape;
  }
  bool reduced[kMaxRank] = {};
  for (int i = 0; i < axis_count; ++i) {
    const int axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (axis < 0 || axis >= rank || reduced[axis]) return Status::kBadShape;
    reduced[axis] = true;
  }
  std::int64_t nonzero = 1;  // the product without zeros bounds every partial product and stride
  for (int i = 0; i < rank; ++i) {
    if (extents[i] < 0) return Status::kBadShape;
    if (extents[i] > 0 && !multiply(nonzero, extents[i], &nonzero)) return Status::kBadShape;
  }

  struct Group {
    bool reduced;
    std::int64_t extent;
    std::int64_t stride;
  };
  Group groups[kMaxRank];
  int count = 0;
  std::int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {  // fastest first
    if (extents[i] != 1) {
      if (count > 0 && groups[count - 1].reduced == reduced[i]) {
        groups[count - 1].extent *= extents[i];
      } else {
        groups[count++] = {reduced[i], extents[i], stride};
      }
    }
    stride *= extents[i] == 0 ? 1 : extents[i];
  }
  *folded = FoldedAxes{};
  if (count == 0) {
    folded->inner_reduced = true;
    return Status::kOk;
  }
  folded->inner_reduced = groups[0].reduced;
  folded->inner = groups[0].extent;
  for (int i = count - 1; i >= 1; --i) {  // slowest first
    IndexMap& map = groups[i].reduced ? folded->reduced : folded->kept;
    if (map.groups == kMaxAxisGroups) return Status::kTooManyAxisGroups;
    map.extents[map.groups] = Divisor::of(groups[i].extent);
    map.strides[map.groups] = groups[i].stride;
    ++map.groups;
    (groups[i].reduced ? folded->outer_reduced : folded->outer_kept) *= groups[i].extent;
  }
  return Status::kOk;
}

Status plan_reduction(const FoldedAxes& folded, int vector_size, std::size_t state_bytes, bool merges,
                      ReductionPlan* plan) {
  *plan = ReductionPlan{};
  plan->columns = folded;
  if (folded.results() == 0) return Status::kOk;
  const std::int64_t merged_units =
      merges && folded.elements_each() > 0 ? regroup_columns(folded, vector_size, plan) : 0;
  return folded.inner_reduced && merged_units == 0 ? plan_rows(folded, vector_size, state_bytes, plan)
                                                   : plan_columns(folded, vector_size, state_bytes, merged_units, plan);
}

}  // namespace tensorlint::kernels

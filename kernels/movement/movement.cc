#include "kernels/movement/movement.h"

#include "kernels/common/overlap.h"
#include "kernels/common/workspace.h"
#include "kernels/movement/dispatch.h"

namespace tensorlint::kernels {
namespace {

bool has_indices(const Movement& m) { return m.kind == MovementKind::kGather || m.kind == MovementKind::kScatter; }

/// After the tickets: partial results of the look for bad indices, then a word for each tuple.
std::size_t partial_bytes(const MovementPlan& plan) { return plan.index_blocks * sizeof(IndexSummary); }

std::size_t workspace_of(const Movement& m, const MovementParameters& p, const MovementPlan& plan) {
  if (!has_indices(m) || p.elements == 0) return 0;
  const bool scans = m.bad_indices != nullptr && plan.index_blocks > 1;
  const bool marks = m.kind == MovementKind::kScatter;
  if (!scans && !marks) return 0;
  return kTicketBytes + partial_bytes(plan) + (marks ? static_cast<std::size_t>(m.tuples) * sizeof(unsigned) : 0);
}

Status check_memory(const Movement& m, const void* workspace, std::size_t needed) {
  if (m.destination == nullptr || (m.source == nullptr && m.from.elements > 0)) return Status::kNullPointer;
  if (has_indices(m) && m.indices == nullptr) return Status::kNullPointer;
  const auto size = static_cast<std::size_t>(m.element_bytes);
  const std::size_t index_size = m.wide_indices ? 8 : 4;
  if (!is_aligned(m.source, size) || !is_aligned(m.destination, size) || !is_aligned(m.bad_indices, 8) ||
      (has_indices(m) && !is_aligned(m.indices, index_size)) || (needed > 0 && !is_aligned(workspace, 16)))
    return Status::kMisaligned;
  const std::size_t indices = has_indices(m) ? static_cast<std::size_t>(m.tuples * m.parts) * index_size : 0;
  const Region regions[] = {{m.source, static_cast<std::size_t>(m.from.elements) * size},
                            {m.indices, indices},
                            {m.destination, static_cast<std::size_t>(m.to.elements) * size, true},
                            {m.bad_indices, 16, true},
                            {workspace, needed, true}};
  return check_overlap(regions);
}

Status transpose(const TransposeParameters& t, int word, Stream stream) {
  const auto blocks = static_cast<unsigned>(t.tiles < kMaxMovementBlocks ? t.tiles : kMaxMovementBlocks);
  switch (word) {
    case 1:
      return launch_transpose<std::uint8_t>(t, blocks, stream);
    case 2:
      return launch_transpose<std::uint16_t>(t, blocks, stream);
    case 4:
      return launch_transpose<std::uint32_t>(t, blocks, stream);
    default:
      return launch_transpose<std::uint64_t>(t, blocks, stream);
  }
}

Status scan(const Movement& m, const MovementPlan& plan, void* workspace, Stream stream) {
  IndexParameters p;
  p.indices = m.indices;
  p.wide = m.wide_indices;
  p.count = m.tuples * m.parts;
  p.parts = Divisor::of(m.parts);
  for (int part = 0; part < m.parts; ++part) p.extents[part] = m.part_extents[part];
  p.report = m.bad_indices;
  p.blocks = plan.index_blocks;
  if (p.blocks > 1) {
    p.ticket = tickets_of(workspace);
    p.partials = reinterpret_cast<IndexSummary*>(scratch_of(workspace));
  }
  return launch_index_scan(p, stream);
}

}  // namespace

Status movement_workspace(const Movement& movement, std::size_t* bytes) {
  *bytes = 0;
  MovementParameters p;
  MovementPlan plan;
  if (const Status status = plan_movement(movement, &p, &plan); status != Status::kOk) return status;
  *bytes = workspace_of(movement, p, plan);
  return Status::kOk;
}

Status move(const Movement& m, void* workspace, std::size_t workspace_bytes, Stream stream) {
  MovementParameters p;
  MovementPlan plan;
  if (const Status status = plan_movement(m, &p, &plan); status != Status::kOk) return status;
  if (p.elements == 0) {
    // There may be indices all the same.
    if (!has_indices(m) || m.bad_indices == nullptr) return Status::kOk;
    if (m.indices == nullptr && m.tuples > 0) return Status::kNullPointer;
    if (!is_aligned(m.indices, m.wide_indices ? 8 : 4) || !is_aligned(m.bad_indices, 8)) return Status::kMisaligned;
    return scan(m, plan, workspace, stream);
  }
  const std::size_t needed = workspace_of(m, p, plan);
  if (needed > 0 && workspace == nullptr) return Status::kNullPointer;
  if (const Status status = check_memory(m, workspace, needed); status != Status::kOk) return status;
  if (workspace_bytes < needed) return Status::kWorkspaceTooSmall;
  if (has_indices(m) && m.bad_indices != nullptr)
    if (const Status status = scan(m, plan, workspace, stream); status != Status::kOk) return status;
  if (m.kind == MovementKind::kScatter) {
    auto* const last = reinterpret_cast<unsigned*>(scratch_of(workspace) + partial_bytes(plan));
    if (const Status status = launch_last_updates({p, last}, stream); status != Status::kOk) return status;
    p.last = last;
  }
  TransposeParameters turned;
  if (m.kind == MovementKind::kCopy && plan_transpose(p, plan.word, &turned))
    return transpose(turned, plan.word, stream);
  switch (plan.word) {
    case 1:
      return launch_movement<std::uint8_t>(m.kind, p, plan.blocks, stream);
    case 2:
      return launch_movement<std::uint16_t>(m.kind, p, plan.blocks, stream);
    case 4:
      return launch_movement<std::uint32_t>(m.kind, p, plan.blocks, stream);
    case 8:
      return launch_movement<std::uint64_t>(m.kind, p, plan.blocks, stream);
    default:
      return launch_movement<MovementCell>(m.kind, p, plan.blocks, stream);
  }
}

}  // namespace tensorlint::kernels

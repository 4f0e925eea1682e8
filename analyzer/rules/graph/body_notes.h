#pragma once

#include <cstddef>

#include "analyzer/rules/rule.h"
#include "ir/graph/region_op.h"

namespace tensorlint::rules {

/// Leads into graph `g` of a node: "`then_branch` gives `a`, which becomes float32 here" at the node that decides the
/// dtype of the graph's output. Nothing where the dtype is not known.
void note_body_output(FindingBuilder& finding, const dataflow::Analysis& analysis, const RegionOp& region,
                      std::size_t g, ValueId output);

/// The output of graph `g` that becomes a result; kAbsent where there is none.
ValueId body_output(const Model& model, const RegionOp& region, std::size_t g, std::size_t result);

/// Both are known to be of one kind and dtype, and not the same.
bool have_other_types(const dataflow::Analysis& analysis, ValueId a, ValueId b);

}  // namespace tensorlint::rules

#pragma once

#include <string_view>

#include "analyzer/rules/rule.h"

namespace tensorlint::rules {

/// Leads into a body: "`then_branch` gives `a`, which becomes float32 here" at the node that decides the dtype of the
/// body's output. Nothing where the dtype is not known.
void note_body_output(FindingBuilder& finding, const dataflow::Analysis& analysis, std::string_view body,
                      ValueId output);

/// The output `index` of the body in attribute `name` of a node; absent where there is none.
ValueId body_output(const NodeCall& call, std::string_view name, std::size_t index);

/// Both are known to be of one kind and dtype, and not the same.
bool have_other_types(const dataflow::Analysis& analysis, ValueId a, ValueId b);

}  // namespace tensorlint::rules

#pragma once

#include "ir/facts/fact.h"
#include "runtime/values/host_value.h"
#include "runtime/values/known_lists.h"

namespace tensorlint::runtime {

/// The fact of a value in a run: its kind, dtype and extents; with `with_content` the elements of a small tensor.
/// `lists`: facts of sequences and optionals in `facts`.
FactId concrete_fact(FactStore& facts, const HostValue& value, bool with_content, KnownLists<FactId>& lists);

/// The value is one of those that the fact describes: the property that analysis promises. `why` gets what is not.
bool contains(const FactStore& facts, FactId fact, const HostValue& value, std::string& why);

}  // namespace tensorlint::runtime

#pragma once

#include <span>
#include <string>

#include "ir/graph/edit.h"

namespace tensorlint::text {

/// What edits add, as text.
std::string code_of(const NewAttribute& attribute);
std::string code_of(const NewNode& node);
std::string code_of(const AddInitializer& tensor);
/// A list of operands or results; an empty name is an absent one.
std::string names_code(std::span<const std::string> names);

}  // namespace tensorlint::text

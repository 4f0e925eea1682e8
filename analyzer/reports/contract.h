#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "passes/contract/contract.h"

namespace tensorlint::reports {

/// A requirement a line, in the order of the contract, below each the node and the line of the program that ask for it
/// (looked for in `source_root`); a sentence where there is none, or not all were looked for.
std::string contract_text(const dataflow::Analysis& analysis, const contract::Contract& contract,
                          const std::string& source_root);

/// The document of `contract --format json` (docs/schema/contract.schema.json).
std::string contract_json(const dataflow::Analysis& analysis, const contract::Contract& contract,
                          const std::string& source_root);

/// Its array of requirements.
nlohmann::ordered_json requirements_json(const dataflow::Analysis& analysis, const contract::Contract& contract,
                                         const std::string& source_root);

}  // namespace tensorlint::reports

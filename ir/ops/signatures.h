#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ir/ops/inference.h"

namespace tensorlint::ops {

/// One operand or result of a signature: "float32[N, 3]", "T[N, 2*C]", "int64|int32[]", "T[...]"; with "?" at its end
/// an operand that may be left out.
struct SignatureType {
  DTypeSet dtypes = DTypeSet::all();
  std::string variable;  ///< name of the type variable; empty: dtypes are fixed
  bool ranked = false;
  std::vector<std::string> dims;  ///< numbers, names, "?"; of results also sums, products and quotients of these
  bool optional = false;
};

/// What a user says of an operator that is not known here.
struct Signature {
  std::vector<SignatureType> inputs, outputs;
  std::size_t required = 0;  ///< operands up to the last one that may not be left out
};

/// By (domain, operator).
using Signatures = std::map<std::pair<std::string, std::string>, Signature, std::less<>>;

/// Errors: text of none of these forms or of more than 1,000 characters, more than kMaxRank dims, an expression in an
/// operand, and in a result a type variable that no operand has or an expression of names that nothing before it binds.
/// A name that stands alone in a result is an extent of its own, which later results may use.
Result<Signature> make_signature(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs);

/// Checks operands and gives results as the signature says. The same violations as with ONNX's own operators, by kind.
void infer_signature(const Signature& signature, const Application& call, InferenceResult& out);

}  // namespace tensorlint::ops

#pragma once

#include "base/result.h"
#include "ir/graph/model.h"
#include "ir/schema/schema.h"

namespace tensorlint {

/// An operator that ONNX defines by a function of others (OpSchema::function_body), as a model whose graph 1 is that
/// function; its main graph is empty. Errors: the schema has no such body.
Result<Model> read_schema_function(const OpSchema& schema);

}  // namespace tensorlint

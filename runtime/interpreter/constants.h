#pragma once

#include <string>

#include "ir/constants/tensor.h"
#include "ir/graph/model.h"
#include "runtime/values/host_value.h"

namespace tensorlint::runtime {

/// A constant of a model as a tensor. Raw data whose bytes lie as elements in memory do is a view of the model's bytes,
/// which `owner` keeps alive; else it is decoded. External data is read below the folder of `model_path`; of
/// attributes, which have none, that is empty. Throws RunFault where the data is malformed, missing or past the memory
/// limit.
HostTensor load_constant(const Tensor& tensor, const std::string& model_path, const std::shared_ptr<const void>& owner,
                         Memory& memory);

/// The same of a sparse constant, made dense.
HostTensor load_constant(const SparseTensor& sparse, const std::string& model_path,
                         const std::shared_ptr<const void>& owner, Memory& memory);

}  // namespace tensorlint::runtime

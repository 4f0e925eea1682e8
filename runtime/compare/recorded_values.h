#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/id_vector.h"
#include "base/result.h"
#include "ir/graph/model.h"
#include "runtime/files/npz.h"
#include "runtime/values/host_value.h"

namespace tensorlint::compare {

/// Values that another engine recorded, by the names that they have in the main graph of a model. They are read one by
/// one, when they are asked for.
class RecordedValues {
 public:
  /// All `.npz`, `.npy` (named as the value) and `.pb` files of a folder, and those that are initializers of
  /// `.initializers` files. Errors: files that are damaged, names that the model has not, a name that occurs twice, no
  /// value at all.
  static Result<RecordedValues> open(const std::string& folder, const Model& model);

  bool has(ValueId value) const { return sources_.contains(value); }
  std::size_t size() const { return sources_.size(); }
  /// In `dtype` of the model, a float that may be narrower than that of the record if no element changes by that.
  /// Errors: a damaged file, another dtype; a narrower float says nothing about what the engine computed.
  Result<runtime::HostTensor> read(ValueId value, DType dtype, runtime::Memory& memory) const;

 private:
  struct Source {
    std::string name, path;
    std::size_t archive = 0, member = 0;   ///< of a .npz file
    std::shared_ptr<const Model> model{};  ///< a file whose initializers are values
    const Tensor* tensor = nullptr;        ///< there
  };
  std::optional<Error> add(const Model& model, std::string_view name, Source source);

  std::vector<runtime::NpzFile> archives_;
  std::map<ValueId, Source> sources_;
};

}  // namespace tensorlint::compare

#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/recording/recording.h"
#include "tensorlint/builder.h"

namespace tensorlint::builder {

/// Attributes of a call as a recording takes them: views into `given`, which must outlive this; tensors are kept in the
/// recording.
class AttributeViews {
 public:
  AttributeViews(std::span<const Attr> given, Recording& recording);
  void add_body(std::string_view name, GraphId body);
  std::span<const Attribute> views() const { return views_; }

 private:
  std::vector<Attribute> views_;
  std::vector<std::vector<std::string_view>> strings_;
};

/// A tensor that lives as long as the recording, with the data.
const Tensor* kept_tensor(Recording& recording, Data data, NameId name);

}  // namespace tensorlint::builder

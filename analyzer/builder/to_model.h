#pragma once

#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "analyzer/builder/state.h"
#include "ir/graph/model.h"

namespace tensorlint::builder {

/// Attributes of a call as operators and models see them; views into `given`, which must outlive this.
class AttributeViews {
 public:
  explicit AttributeViews(std::span<const Attr> given);
  AttributeViews(const AttributeViews&) = delete;
  AttributeViews& operator=(const AttributeViews&) = delete;
  std::span<const Attribute> views() const { return views_; }

 private:
  std::vector<Attribute> views_;
  std::deque<Tensor> tensors_;
  std::deque<std::vector<std::string_view>> strings_;
};

Tensor tensor_of(const Data& data, NameId name);

/// The graph of a builder as a model, valid until the builder changes. Bodies that are still open stand as part of the
/// main graph, their inputs as its inputs. `declare_types`: values get their facts as declared types. `graphs`, if not
/// null: the graph of each body.
Model to_model(const State& state, bool declare_types, std::vector<GraphId>* graphs);

}  // namespace tensorlint::builder

#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "ir/facts/fact.h"
#include "ir/graph/model.h"
#include "ir/ops/shape_functions.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint::dataflow {

/// The facts that inference begins with: of initializers, of declared types, of what the user declared.
class InitialFacts {
 public:
  InitialFacts(const Model& model, const AnalysisOptions& options, FactStore& facts)
      : model_(model), options_(options), facts_(facts) {
    for (const StructureFault& fault : model.faults)
      if (fault.kind == StructureFault::Kind::kMalformedTensor && fault.tensor != nullptr)
        malformed_.insert(fault.tensor);
  }

  /// Of an input of the main graph.
  FactId input(ValueId id);
  /// Of a value with an initializer, dense or sparse.
  FactId initializer(const Value& value);
  /// Of a declared type. `site` names the dims that have neither number nor name; with site 0 these are unknown.
  FactId declared(const TypeDecl& type, std::uint64_t site);

 private:
  FactId dense(const Tensor& tensor);
  FactId sparse(const SparseTensor* sparse);
  ops::Dims dims_of(const TypeDecl& type, std::uint64_t site);
  /// Of a dim's name: a formula, as far as the budget for them reaches, or a symbol; unknown for what names no extent.
  Dim extent_named(NameId name);
  FactId refine(FactId base, const InputDeclaration& declared, std::uint64_t site);

  const Model& model_;
  const AnalysisOptions& options_;
  FactStore& facts_;
  std::unordered_map<std::uint32_t, Dim> named_;  // by name: bodies are entered many times
  std::size_t formula_bytes_ = 0;
  std::unordered_set<const Tensor*> malformed_;  // reported as such: their extents say nothing
};

}  // namespace tensorlint::dataflow

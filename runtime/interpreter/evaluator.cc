#include "runtime/interpreter/evaluator.h"

#include <map>
#include <utility>
#include <vector>

#include "ir/schema/schema.h"

namespace tensorlint::runtime {
namespace {

std::vector<Evaluator>& registered() {
  static std::vector<Evaluator> evaluators;
  return evaluators;
}

using Key = std::pair<std::string_view, std::string_view>;

const std::multimap<Key, const Evaluator*>& by_name() {
  static const std::multimap<Key, const Evaluator*> index = [] {
    std::multimap<Key, const Evaluator*> result;
    for (const Evaluator& evaluator : registered())
      result.emplace(Key(evaluator.domain(), evaluator.name()), &evaluator);
    return result;
  }();
  return index;
}

}  // namespace

RegisterEvaluators::RegisterEvaluators(std::initializer_list<Evaluator> evaluators) {
  registered().insert(registered().end(), evaluators.begin(), evaluators.end());
}

std::span<const Evaluator> all_evaluators() { return registered(); }

const Evaluator* find_evaluator(std::string_view domain, std::string_view name, std::int64_t opset) {
  const auto [first, last] = by_name().equal_range(Key(normalised_domain(domain), name));
  for (auto at = first; at != last; ++at)
    if (at->second->first_version() <= opset && opset <= at->second->last_version()) return at->second;
  return nullptr;
}

}  // namespace tensorlint::runtime

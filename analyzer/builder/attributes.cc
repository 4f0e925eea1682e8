#include "analyzer/builder/attributes.h"

#include <memory>
#include <variant>

namespace tensorlint::builder {

AttributeViews::AttributeViews(std::span<const Attr> given, Recording& recording) {
  views_.reserve(given.size());
  strings_.reserve(given.size());
  for (const Attr& attribute : given) {
    Attribute& view = views_.emplace_back();
    view.name = attribute.name();
    const Attr::Payload& payload = attribute.payload();
    if (const auto* i = std::get_if<std::int64_t>(&payload)) {
      view.kind = AttributeKind::kInt;
      view.i = *i;
    } else if (const auto* f = std::get_if<float>(&payload)) {
      view.kind = AttributeKind::kFloat;
      view.f = *f;
    } else if (const auto* s = std::get_if<std::string>(&payload)) {
      view.kind = AttributeKind::kString;
      view.s = *s;
    } else if (const auto* ints = std::get_if<std::vector<std::int64_t>>(&payload)) {
      view.kind = AttributeKind::kInts;
      view.ints = *ints;
    } else if (const auto* floats = std::get_if<std::vector<float>>(&payload)) {
      view.kind = AttributeKind::kFloats;
      view.floats = *floats;
    } else if (const auto* strings = std::get_if<std::vector<std::string>>(&payload)) {
      view.kind = AttributeKind::kStrings;
      view.strings = strings_.emplace_back(strings->begin(), strings->end());
    } else {
      view.kind = AttributeKind::kTensor;
      view.tensor = kept_tensor(recording, std::get<Data>(payload), NameId::kEmpty);
    }
  }
}

void AttributeViews::add_body(std::string_view name, GraphId body) {
  Attribute& view = views_.emplace_back();
  view.name = name;
  view.kind = AttributeKind::kGraph;
  view.graph = body;
}

const Tensor* kept_tensor(Recording& recording, Data data, NameId name) {
  const auto owner = std::make_shared<const Data>(std::move(data));
  recording.memory().model().storage.push_back(owner);
  Tensor* const tensor = recording.memory().new_tensor();
  tensor->name = name;
  tensor->dtype_code = static_cast<std::int32_t>(owner->dtype());
  tensor->dims = owner->dims();
  tensor->has_raw = true;
  tensor->raw = owner->bytes();
  return tensor;
}

}  // namespace tensorlint::builder

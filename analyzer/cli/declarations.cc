#include "analyzer/cli/declarations.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/text.h"
#include "passes/placement/device_name.h"

namespace tensorlint::cli {
namespace {

struct Assignment {
  std::string_view name, text;
};

/// Names may hold `=`, what is assigned never does.
std::optional<Assignment> split(std::string_view text) {
  const std::size_t at = text.rfind('=');
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  return Assignment{text.substr(0, at), text.substr(at + 1)};
}

Error wrong(std::string_view option, std::string_view text, std::string_view form) {
  return {fmt::format("{} `{}` is not of the form {}", option, text, form), {}};
}

/// A name, "?", or a number that an extent can be. Names hold blanks only in expressions, as exporters write them ("N +
/// 1"): else a comma was forgotten.
bool is_dim(std::string_view text) {
  if (text.empty()) return false;
  if (text.find_first_of(" \t\n") != std::string_view::npos && text.find_first_of("+-*/(") == std::string_view::npos)
    return false;
  const bool number = text.find_first_not_of("0123456789") == std::string_view::npos;
  std::int64_t extent = 0;
  return !number || std::from_chars(text.data(), text.data() + text.size(), extent).ec == std::errc();
}

bool parse_type(std::string_view text, dataflow::InputDeclaration& out) {
  const std::size_t open = text.find('[');
  const std::string_view dtype = trimmed(text.substr(0, open));
  if (!dtype.empty()) {
    const auto named = dtype_named(dtype);
    if (!named) return false;
    out.dtypes = *named;
  }
  if (open == std::string_view::npos) return !dtype.empty();
  if (!text.ends_with(']')) return false;
  out.has_shape = true;
  out.dims.clear();
  std::string_view dims = trimmed(text.substr(open + 1, text.size() - open - 2));
  while (!dims.empty()) {
    const std::size_t comma = dims.find(',');
    const std::string_view dim = trimmed(dims.substr(0, comma));
    if (!is_dim(dim) || (comma != std::string_view::npos && comma + 1 == dims.size())) return false;
    out.dims.push_back(std::string(dim));
    dims.remove_prefix(comma == std::string_view::npos ? dims.size() : comma + 1);
  }
  return true;
}

std::optional<double> parse_number(std::string_view text, double if_empty) {
  text = trimmed(text);
  if (text.empty()) return if_empty;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool good = error == std::errc() && end == text.data() + text.size() && !std::isnan(number);
  return good ? std::optional(number) : std::nullopt;
}

bool parse_range(std::string_view text, Range& out) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return false;
  const auto lo = parse_number(text.substr(0, colon), -HUGE_VAL), hi = parse_number(text.substr(colon + 1), HUGE_VAL);
  if (!lo || !hi || *lo > *hi) return false;
  out = {*lo, *hi, false};
  return true;
}

}  // namespace

Result<dataflow::AnalysisOptions> parse_declarations(const Declarations& declarations,
                                                     const std::string& default_device) {
  dataflow::AnalysisOptions options;
  options.default_device = default_device;
  for (const std::string& text : declarations.inputs) {
    const auto part = split(text);
    if (!part || !parse_type(part->text, options.values[std::string(part->name)]))
      return wrong("--input", text, "NAME=dtype[dims]");
  }
  for (const std::string& text : declarations.ranges) {
    const auto part = split(text);
    Range range;
    if (!part || !parse_range(part->text, range)) return wrong("--range", text, "NAME=lo:hi with lo <= hi");
    options.values[std::string(part->name)].range = range;
  }
  for (const std::string& text : declarations.devices) {
    const auto part = split(text);
    const auto device = placement::canonical_device(part ? part->text : std::string_view(text));
    if (!device) return wrong("--device", text, "NAME or VALUE=NAME with a device such as cpu or cuda:0");
    if (part) {
      options.values[std::string(part->name)].device = *device;
    } else {
      options.default_device = *device;
    }
  }
  return options;
}

void add_declarations(const dataflow::AnalysisOptions& later, dataflow::AnalysisOptions& to) {
  if (!later.default_device.empty()) to.default_device = later.default_device;
  if (to.values.empty()) {
    to.values = later.values;
    return;
  }
  for (const auto& [name, says] : later.values) {
    dataflow::InputDeclaration& known = to.values[name];
    if (says.dtypes) known.dtypes = says.dtypes;
    if (says.has_shape) {
      known.has_shape = true;
      known.dims = says.dims;
    }
    if (says.range) known.range = says.range;
    if (!says.device.empty()) known.device = says.device;
  }
}

placement::PlacementOptions placement_options(const dataflow::AnalysisOptions& options) {
  placement::PlacementOptions placement;
  placement.default_device = options.default_device;
  for (const auto& [name, declaration] : options.values)
    if (!declaration.device.empty()) placement.values[name] = declaration.device;
  return placement;
}

std::optional<Error> check_names(const Declarations& declarations, const Model& model, std::string_view path) {
  for (const auto* texts : {&declarations.inputs, &declarations.ranges, &declarations.devices})
    for (const std::string& text : *texts)
      if (const auto part = split(text); part && model.find_value(GraphId::kMain, part->name) == ValueId::kAbsent)
        return Error{fmt::format("{} has no value `{}` in its main graph", path, part->name), {}};
  return std::nullopt;
}

}  // namespace tensorlint::cli

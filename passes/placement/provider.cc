#include "passes/placement/provider.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <mutex>
#include <optional>

#include "base/lines.h"
#include "ir/graph/region_op.h"
#include "passes/dataflow/order.h"
#include "passes/placement/device_name.h"
#include "passes/placement/operator_traits.h"

namespace tensorlint::placement {

/// The text of a table that comes with this program, empty where there is none; made from passes/placement/providers.
std::string_view provider_table(std::string_view name);
std::span<const std::string_view> provider_table_names();

namespace {

/// Type variables of one row, each of which is compared with each operand; built-in rows have fewer than 30.
constexpr std::size_t kMaxTypes = 64;
/// Of a provider and its source: many findings name them.
constexpr std::size_t kLongestField = 200;

std::string_view next_word(std::string_view& rest) {
  while (rest.starts_with(' ') || rest.starts_with('\t')) rest.remove_prefix(1);
  const std::string_view word = rest.substr(0, rest.find_first_of(" \t"));
  rest.remove_prefix(word.size());
  return word;
}

bool parse_number(std::string_view text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 1;
}

/// `13+`, `6-12`
bool parse_opsets(std::string_view text, ProviderKernel& kernel) {
  if (text.ends_with('+')) return parse_number(text.substr(0, text.size() - 1), kernel.since);
  const std::size_t dash = text.find('-');
  return dash != std::string_view::npos && parse_number(text.substr(0, dash), kernel.since) &&
         parse_number(text.substr(dash + 1), kernel.until) && kernel.since <= kernel.until;
}

/// `T=float32,float16`; what is wrong with it, empty for nothing.
std::string parse_types(std::string_view text, ProviderKernel& kernel) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos)
    return fmt::format("`{}` is not of the form T=float32,float16", text);
  if (equals + 1 == text.size()) return fmt::format("`{}` names no dtype", text);
  DTypeSet dtypes = DTypeSet::from_bits(0);
  for (std::string_view rest = text.substr(equals + 1); !rest.empty();) {
    const std::size_t comma = rest.find(',');
    const std::string_view name = rest.substr(0, comma);
    const auto dtype = dtype_named(name);
    if (!dtype) return fmt::format("`{}` is not a dtype", name);
    dtypes = dtypes | *dtype;
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  }
  if (kernel.types.size() == kMaxTypes) return fmt::format("more than {} type variables", kMaxTypes);
  kernel.types.emplace_back(text.substr(0, equals), dtypes);
  return {};
}

std::string key_of(std::string_view domain, std::string_view name) {
  return domain.empty() ? std::string(name) : fmt::format("{}.{}", domain, name);
}

/// onnxruntime's KernelRegistry::VerifyKernelDef: a kernel without an end is for its own version of the operator only.
bool covers(const ProviderKernel& kernel, std::int64_t since) {
  return kernel.since == since || (kernel.since < since && kernel.until != 0 && since <= kernel.until);
}

/// A dtype that a kernel lacks; empty where it has all that are known.
DTypeSet lacking(const dataflow::Analysis& analysis, const Node& node, const OpSchema& schema,
                 const ProviderKernel& kernel) {
  const Model& model = analysis.model();
  const auto check = [&](std::span<const ValueId> values, std::span<const FormalParameter> formals) {
    for (std::size_t i = 0; i < values.size() && !formals.empty(); ++i) {
      if (values[i] == ValueId::kAbsent) continue;
      const FormalParameter& formal = formals[std::min(i, formals.size() - 1)];
      const std::string_view variable = schema.types[formal.type].name;
      const Fact& fact = analysis.fact(values[i]);
      if (fact.kind != ValueKind::kTensor || fact.dtypes == DTypeSet::all()) continue;
      for (const auto& [name, allowed] : kernel.types)
        if ((name == variable || name == formal.name) && (fact.dtypes & allowed).bits() == 0) return fact.dtypes;
    }
    return DTypeSet::from_bits(0);
  };
  const DTypeSet operand = check(model.operands(node), schema.inputs);
  return operand.bits() != 0 ? operand : check(model.results(node), schema.outputs);
}

/// onnxruntime's kSmallInitializerThreshold: a constant of so many elements is no reason to stay on an accelerator.
constexpr std::int64_t kSmallConstant = 100;

class Chooser {
 public:
  Chooser(const dataflow::Analysis& analysis, std::span<const std::shared_ptr<const ProviderTable>> providers)
      : analysis_(analysis),
        model_(analysis.model()),
        providers_(providers),
        cpu_(built_in_provider(providers.empty() ? "cpu" : providers.front()->host)),
        on_cpu_(model_.values.size()) {
    for (const Operator& op : model_.operators) traits_.push_back(traits_of(model_, op));
  }

  ProviderChoices run() {
    const dataflow::NodeOrders orders = dataflow::order_all_nodes(model_, analysis_.meter());
    choices_.reserve(model_.nodes.size());
    for (const GraphId graph : model_.graphs.ids())
      for (const NodeId node : orders[graph].nodes) {
        if (analysis_.meter().is_spent()) break;
        choose(node);
      }
    std::ranges::sort(choices_, {}, &ProviderChoices::value_type::first);
    return std::move(choices_);
  }

 private:
  void choose(NodeId id) {
    const Node& node = model_.node(id);
    const Operator& op = model_.op(node);
    const OperatorTraits& traits = traits_[node.op];
    const DeviceSignature& devices = traits.devices;
    if (traits.region != RegionKind::kNone || devices.rule == DeviceRule::kArgument) return;
    if (traits.opcode == Opcode::kConstant) return;
    ProviderChoice choice;
    for (; choice.provider < providers_.size(); ++choice.provider) {
      const MissingKernel missing = find_missing_kernel(analysis_, node, *providers_[choice.provider]);
      if (!missing.any() || is_inlined(op)) break;
      if (choice.provider == 0) choice.missing = missing;
    }
    if (choice.provider < providers_.size() && prefers_cpu(node, devices)) {
      choice.provider = static_cast<std::uint32_t>(providers_.size());
      choice.shape_arithmetic = true;
    }
    if (choice.provider == providers_.size() || devices.has_host_results())
      for (const ValueId result : model_.results(node))
        if (result != ValueId::kAbsent) on_cpu_[result] = true;
    choices_.emplace_back(id, choice);
  }

  /// What the cpu has no kernel for either, whatever the dtype, can only be replaced by the operators that ONNX defines
  /// it by.
  bool is_inlined(const Operator& op) const {
    if (op.schema == nullptr) return false;
    const auto known = cpu_->kernels.find(key_of(model_.text(op.domain), model_.text(op.name)));
    return known == cpu_->kernels.end() || std::ranges::none_of(known->second, [&](const ProviderKernel& kernel) {
             return covers(kernel, op.schema->since_version);
           });
  }

  bool is_small_constant(ValueId value) const {
    const Value& known = model_.value(value);
    const bool constant =
        known.origin == ValueOrigin::kInitializer ||
        (known.origin == ValueOrigin::kNode && traits_[model_.node(known.producer).op].opcode == Opcode::kConstant);
    const Fact& fact = analysis_.fact(value);
    if (!constant || fact.shape == ShapeId::kUnranked) return false;
    std::int64_t count = 1;
    for (const Dim dim : analysis_.facts().dims_of(fact.shape)) {
      const auto extent = analysis_.facts().dims().as_constant(dim);
      if (!extent || (*extent > 0 && count > kSmallConstant / *extent)) return false;
      count *= *extent;
    }
    return count <= kSmallConstant;
  }

  bool prefers_cpu(const Node& node, const DeviceSignature& devices) const {
    constexpr DTypeSet kNotOnCpu = DTypeSet(DType::kFloat16) | DType::kBFloat16 | DType::kFloat8E4M3FN |
                                   DType::kFloat8E4M3FNUZ | DType::kFloat8E5M2 | DType::kFloat8E5M2FNUZ;
    const auto operands = model_.operands(node);
    bool any = false;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i] == ValueId::kAbsent) continue;
      if ((analysis_.fact(operands[i]).dtypes & kNotOnCpu) == analysis_.fact(operands[i]).dtypes) return false;
      const Value& value = model_.value(operands[i]);
      if (on_cpu_[operands[i]]) {
        if (devices.is_host(i)) return false;  // the kernel wants it there anyway
        any = true;
      } else if (!is_small_constant(operands[i]) &&
                 !(value.origin == ValueOrigin::kInput && value.graph == GraphId::kMain)) {
        return false;
      }
    }
    return any;
  }

  const dataflow::Analysis& analysis_;
  const Model& model_;
  std::span<const std::shared_ptr<const ProviderTable>> providers_;
  std::shared_ptr<const ProviderTable> cpu_;
  IdVector<OperatorId, OperatorTraits> traits_;
  IdVector<ValueId, bool> on_cpu_;
  ProviderChoices choices_;
};

}  // namespace

MissingKernel find_missing_kernel(const dataflow::Analysis& analysis, const Node& node, const ProviderTable& provider) {
  const Model& model = analysis.model();
  const Operator& op = model.op(node);
  constexpr std::uint64_t kStepsOfLookup = 8;
  analysis.meter().charge(kStepsOfLookup);
  const auto known = provider.kernels.find(key_of(model.text(op.domain), model.text(op.name)));
  if (known == provider.kernels.end()) return {.kind = MissingKernel::Kind::kOperator};
  if (op.schema == nullptr) return {};  // a custom operator by its name alone
  MissingKernel missing{.kind = MissingKernel::Kind::kVersion};
  analysis.meter().charge(known->second.size());
  for (const ProviderKernel& kernel : known->second)
    missing.newest = std::max({missing.newest, kernel.since, kernel.until});
  for (const ProviderKernel& kernel : known->second) {
    if (!covers(kernel, op.schema->since_version)) continue;
    analysis.meter().charge((node.operand_count + std::uint64_t{node.result_count}) * kernel.types.size());
    if (analysis.meter().is_spent()) return {};
    const DTypeSet dtypes = lacking(analysis, node, *op.schema, kernel);
    if (dtypes.empty()) return {};
    missing.kind = MissingKernel::Kind::kDtypes;
    missing.dtypes = dtypes;
  }
  return missing;
}

std::string to_text(const MissingKernel& missing, const Operator& op, const ProviderTable& provider) {
  switch (missing.kind) {
    case MissingKernel::Kind::kNothing:
      return {};
    case MissingKernel::Kind::kOperator:
      return fmt::format("no kernel of {}", provider.name);
    case MissingKernel::Kind::kVersion: {
      const int version = op.schema->since_version;
      std::string why = fmt::format("no kernel of {} for version {} of the operator", provider.name, version);
      if (missing.newest < version) why += fmt::format(", the newest is for {}", missing.newest);
      return why;
    }
    case MissingKernel::Kind::kDtypes:
      break;
  }
  return fmt::format("no kernel of {} for {}", provider.name, missing.dtypes.to_text());
}

Result<ProviderTable> parse_provider(std::string_view text, const std::string& path) {
  ProviderTable table;
  std::uint32_t line_number = 0;
  const auto wrong = [&](std::string message) {
    return Error{fmt::format("{}:{}: {}", path, line_number, message), {.line = line_number, .column = 1}};
  };
  while (!text.empty()) {
    ++line_number;
    std::string_view line = take_line(text);
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = line.substr(0, line.find('#'));
    const std::string_view first = next_word(line);
    if (first.empty()) continue;
    if (first == "provider" || first == "device" || first == "source" || first == "host") {
      while (line.starts_with(' ')) line.remove_prefix(1);
      std::string& field = first == "provider" ? table.name
                           : first == "device" ? table.device
                           : first == "host"   ? table.host
                                               : table.source;
      field = line;
      while (field.ends_with(' ')) field.pop_back();
      if (field.empty()) return wrong(fmt::format("`{}` says nothing", first));
      if (field.size() > kLongestField)
        return wrong(fmt::format("what `{}` says is longer than {} bytes", first, kLongestField));
      if (first == "device") {
        const auto device = canonical_device(field);
        if (!device) return wrong(fmt::format("`{}` is not a device; expected cpu, cuda:0, ...", field));
        table.device = *device;
      }
      if (first == "host" && provider_table(field).empty())
        return wrong(
            fmt::format("after `host` comes a built-in provider, not `{}`; there are {}", field, built_in_providers()));
      continue;
    }
    ProviderKernel kernel;
    const std::string_view opsets = next_word(line);
    if (!parse_opsets(opsets, kernel))
      return wrong(fmt::format("after `{}` comes a range of opsets, 13+ or 6-12, not `{}`", first, opsets));
    for (std::string_view types = next_word(line); !types.empty(); types = next_word(line))
      if (std::string fault = parse_types(types, kernel); !fault.empty()) return wrong(std::move(fault));
    constexpr std::string_view kStandard = "ai.onnx.";
    const bool standard = first.starts_with(kStandard) && first.find('.', kStandard.size()) == std::string_view::npos;
    table.kernels[std::string(standard ? first.substr(kStandard.size()) : first)].push_back(std::move(kernel));
  }
  if (table.name.empty()) return wrong("the table has no line `provider NAME`");
  if (table.device.empty()) return wrong("the table has no line `device NAME`");
  return table;
}

std::shared_ptr<const ProviderTable> built_in_provider(std::string_view name) {
  // Each model that is placed asks for one.
  static std::mutex mutex;
  static std::map<const char*, std::shared_ptr<const ProviderTable>> parsed;  // by text
  const std::string_view text = provider_table(name);
  if (text.empty()) return nullptr;
  const std::lock_guard lock(mutex);
  std::shared_ptr<const ProviderTable>& table = parsed[text.data()];
  if (table == nullptr) table = std::make_shared<const ProviderTable>(*parse_provider(text, std::string(name)));
  return table;
}

std::string built_in_providers() { return fmt::format("{}", fmt::join(provider_table_names(), ", ")); }

ProviderChoices choose_providers(const dataflow::Analysis& analysis,
                                 std::span<const std::shared_ptr<const ProviderTable>> providers) {
  return Chooser(analysis, providers).run();
}

}  // namespace tensorlint::placement

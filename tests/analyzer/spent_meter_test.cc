// Every command on every model that we have, with a meter that is spent at one step after another: nothing breaks,
// nothing is claimed that is not so with the whole allowance, and what was left out is said.
//
// TENSORLINT_SPENT_METERS=N: N steps of each model, instead of a few.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/findings/input_report.h"
#include "analyzer/fixes/fixer.h"
#include "analyzer/pipeline/pipeline.h"
#include "analyzer/reports/contract.h"
#include "analyzer/reports/diff.h"
#include "analyzer/reports/report.h"
#include "analyzer/reports/show.h"
#include "analyzer/reports/why.h"
#include "ir/readers/onnx/reader.h"
#include "ir/text/printer.h"
#include "ir/text/reader.h"
#include "ir/writers/onnx/writer.h"
#include "ir/writers/text/writer.h"
#include "passes/contract/contract.h"
#include "passes/placement/explicit_transfers.h"
#include "tests/sanitized.h"

namespace tensorlint {
namespace {

namespace fs = std::filesystem;
using passes::Pass;

constexpr std::size_t kEach = stride(24);

/// What is left to a model of its allowance, in steps or bytes; the rest is taken before it is analysed.
struct Room {
  enum class Of : std::uint8_t {
    kSearch,   ///< steps before reports begin, which have a quarter of the allowance besides
    kAll,      ///< steps, of which nothing is kept back for reports
    kReports,  ///< steps of a check whose passes have run
    kMemory,   ///< bytes, of which nothing is kept back
  };
  Of of = Of::kAll;
  std::uint64_t room = 0;

  std::string text() const {
    constexpr std::string_view kNames[] = {"steps of the search", "steps", "steps of the rules", "bytes"};
    return fmt::format("{} {}", room, kNames[static_cast<std::size_t>(of)]);
  }
};

std::shared_ptr<Meter> meter_with(const Room& room) {
  auto meter = std::make_shared<Meter>(std::uint64_t{1});
  const std::uint64_t steps = meter->steps_allowed();
  switch (room.of) {
    case Room::Of::kSearch:
      meter->charge(steps - steps / 4 - std::min(room.room, steps - steps / 4));
      break;
    case Room::Of::kAll:
      meter->begin_reports();
      meter->charge(steps - std::min(room.room, steps));
      break;
    case Room::Of::kReports:
      meter->begin_reports();
      break;
    case Room::Of::kMemory:
      meter->begin_reports();
      meter->keep(meter->memory_allowed() - std::min(room.room, meter->memory_allowed()));
      break;
  }
  return meter;
}

/// What a run says that another one of the same model can be held against.
struct Outcome {
  std::map<std::string, std::uint64_t> findings;  // errors and warnings, all their places: nodes by "code at node"
  std::set<std::uint64_t> nodes;                  // of these, and those that fail
  std::set<std::string> notes;                    // of all findings
  std::set<std::pair<std::string, std::string>> fixes;  // by finding
  std::string check_json, show_json;                    // whole documents
  std::vector<std::string> requirements;                // of the contract; only where all are known
  bool has_contract = false;
  bool is_partial = false;
  std::uint64_t steps = 0, search_steps = 0, rule_steps = 0, memory = 0;
};

void add_places(const findings::Finding& finding, Outcome& out) {
  const std::string place =
      fmt::format("{} in {} at {} of {}", finding.code, finding.graph, finding.node, finding.value);
  if (finding.severity != findings::Severity::kInfo) {
    out.findings.emplace(place, finding.order);
    if (!finding.node.empty()) out.nodes.insert(finding.order);
  }
  for (const findings::Note& note : finding.notes)
    out.notes.insert(fmt::format("{}: {} at {}", place, note.message, note.node));
  for (const findings::Fix& fix : finding.fixes)
    if (finding.severity != findings::Severity::kInfo)
      out.fixes.emplace(
          place, fmt::format("{} ({}), {} edits", fix.message, findings::to_text(fix.applicability), fix.edits.size()));
  for (const findings::Finding& other : finding.also) add_places(other, out);
}

/// Everything that commands do with a model.
class Run {
 public:
  Run(const Model& model, std::string_view bytes, const Room& room)
      : model_(model),
        bytes_(bytes),
        meter_(meter_with(room)),
        taken_(meter_->steps()),
        memory_(meter_->most_memory()) {
    dataflow::AnalysisOptions options;
    options.meter = meter_;
    analysis_.emplace(dataflow::analyse(model, options));
    pipeline_.emplace(*analysis_, pipeline::Options());
    pipeline_->run({Pass::kLosses, Pass::kPlacement, Pass::kRuntimeCost, Pass::kGradientReach, Pass::kLiveness,
                    Pass::kCycles, Pass::kOpsetNeeds, Pass::kSingleSizes, Pass::kExternalData});
    out_.search_steps = meter_->steps() - taken_;
    if (room.of == Room::Of::kReports)
      meter_->charge(meter_->steps_allowed() - std::min(room.room, meter_->steps_allowed()) - meter_->steps());
    check();
    out_.rule_steps = meter_->steps() - taken_ - out_.search_steps;
    fix();
    show();
    contract();
    place();
    out_.steps = meter_->steps() - taken_;
    out_.memory = meter_->most_memory() - memory_;
  }

  Outcome& outcome() { return out_; }
  const dataflow::Analysis& analysis() const { return *analysis_; }

 private:
  void check() {
    findings::InputReport report;
    pipeline::CheckResults results = pipeline_->check(/*copies_at_run_time=*/false);
    report.path = "m";
    report.checked = true;
    report.nodes = model_.nodes.size();
    report.counts = results.counts;
    report.is_partial = results.is_partial;
    report.findings = std::move(results.findings);
    out_.is_partial = results.is_partial;
    for (const findings::Finding& finding : report.findings) add_places(finding, out_);
    for (const reports::Report& format : reports::all_reports()) {
      const std::string text = text_of([&](const TextSink& out) { format.write(std::span(&report, 1), {}, out); });
      EXPECT_EQ(text.find("only a part was examined") != std::string::npos, report.is_partial) << format.name;
      if (format.name != "json") continue;
      EXPECT_TRUE(nlohmann::json::accept(text));
      out_.check_json = text;
    }
    for (const dataflow::NodeViolation& violation : analysis_->violations())
      out_.nodes.insert(static_cast<std::uint64_t>(violation.node));
    findings_ = std::move(report.findings);
  }

  void fix() {
    const fixes::FixPlan plan = fixes::plan_fixes(model_, findings_, /*unsafe=*/true);
    if (plan.edits.empty()) return;
    const bool is_text = model_.path.ends_with(".onnxtxt");
    const Result<EditedBytes> edited =
        is_text ? edit_onnx_text(bytes_, model_, plan.edits) : edit_onnx(bytes_, model_, plan.edits);
    ASSERT_TRUE(edited) << edited.error().message;
    const std::string fixed_bytes = edited->joined();
    const Result<Model> fixed =
        is_text ? read_onnx_text(fixed_bytes, model_.path) : read_onnx_bytes(fixed_bytes, model_.path);
    ASSERT_TRUE(fixed) << fixed.error().message;
    dataflow::AnalysisOptions options;
    options.meter = meter_;
    const dataflow::Analysis after = dataflow::analyse(*fixed, options);
    fixes::drop_stale_declarations(*analysis_, after);
    const auto print = [](const Model& of) { return [&](const TextSink& out) { to_text(of, {}, out); }; };
    reports::unified_diff(print(model_), print(*fixed), "a", "b", [](std::string_view) {});
  }

  void show() {
    const passes::PassResults& known = pipeline_->results();
    const bool was_partial = known.is_partial();
    reports::show_json(known.analysis(), known.placement(), known.losses(),
                       {.one_line = true, .all_symbols = false, .filter = {}},
                       [&](std::string_view part) { out_.show_json += part; });
    EXPECT_EQ(nlohmann::json::parse(out_.show_json).contains("partial"), was_partial);
    const std::string shown =
        text_of([&](const TextSink& out) { reports::show_text(known.analysis(), known.placement(), {}, out); });
    EXPECT_FALSE(model_.nodes.size() != 0 && shown.empty());
    if (model_.graphs.empty()) return;
    const std::string no_root;
    for (const ValueId value : model_.graph(GraphId::kMain).outputs) {
      if (value == ValueId::kAbsent) continue;
      EXPECT_FALSE(reports::why_text({known.analysis(), known.placement(), no_root}, value).empty());
      EXPECT_FALSE(reports::why_tree({known.analysis(), known.placement(), no_root}, value, 4).empty());
      break;
    }
  }

  void contract() {
    if (contract::certain_failure(*analysis_)) return;
    dataflow::AnalysisOptions options;
    options.meter = meter_;
    const contract::Contract found = contract::find_contract(*analysis_, options);
    EXPECT_FALSE(reports::contract_text(*analysis_, found, {}).empty() && !found.has_all());
    const auto document = nlohmann::json::parse(reports::contract_json(*analysis_, found, {}));
    EXPECT_FALSE(meter_->is_partial() && document.at("complete").get<bool>());
    if (!document.at("complete").get<bool>()) return;
    out_.has_contract = true;
    for (const auto& requirement : document.at("requirements"))
      out_.requirements.push_back(requirement.at("text").get<std::string>());
  }

  void place() {
    if (model_.path.ends_with(".onnxtxt")) return;
    placement::PlacementOptions options;
    options.providers.push_back(placement::built_in_provider("cuda"));
    const Result<placement::TransferPlan> plan = placement::make_transfers_explicit(*analysis_, options);
    if (!plan) return;
    const Result<EditedBytes> edited = edit_onnx(bytes_, model_, plan->edits);
    ASSERT_TRUE(edited) << edited.error().message;
    const std::string placed_bytes = edited->joined();
    const Result<Model> placed = read_onnx_bytes(placed_bytes, model_.path);
    ASSERT_TRUE(placed) << placed.error().message;
  }

  const Model& model_;
  std::string_view bytes_;
  std::shared_ptr<Meter> meter_;
  std::uint64_t taken_, memory_;
  std::optional<dataflow::Analysis> analysis_;
  std::optional<pipeline::Pipeline> pipeline_;
  std::vector<findings::Finding> findings_;
  Outcome out_;
};

/// Where `part` says of a value what `whole` does not; empty where it does not. The model's own declaration counts
/// where nothing is inferred: names of extents, and all of a value that `whole` has seen fail.
class FactComparison {
 public:
  FactComparison(const Model& model, const FactStore& whole, const FactStore& part)
      : model_(model), whole_(whole), part_(part) {}

  std::string differs(FactId whole_id, FactId part_id, const TypeDecl* declared) const {
    if (part_id == FactId::kTop || part_id == FactId::kAbsent) return {};
    const Fact &whole = whole_.fact(whole_id), &part = part_.fact(part_id);
    if (part.kind == ValueKind::kUnknown) return {};
    if (part.kind != whole.kind) return "kind";
    if (part.key != whole.key && part.key != DType::kUndefined) return "key";
    if (!whole.dtypes.is_subset_of(part.dtypes)) return "dtype";
    if (part_.is_ranked(part.shape)) {
      if (!whole_.is_ranked(whole.shape)) return "rank";
      if (differ(whole_.dims_of(whole.shape), part_.dims_of(part.shape), declared)) return "shape";
    }
    if (!(part.range.lo <= whole.range.lo && whole.range.hi <= part.range.hi && part.range.nan >= whole.range.nan))
      return "range";
    if (const Content* content = part_.content(part.content)) {
      const Content* known = whole_.content(whole.content);
      if (known == nullptr || known->floats.size() != content->floats.size()) return "contents";
      if (!content->floats.empty() && !(*known == *content)) return "contents";
      if (differ(known->integers, content->integers, nullptr)) return "contents";
    }
    return part.element == FactId::kTop ? std::string() : differs(whole.element, part.element, nullptr);
  }

 private:
  bool differ(std::span<const Dim> whole, std::span<const Dim> part, const TypeDecl* declared) const {
    if (whole.size() != part.size()) return true;
    const bool has_names = declared != nullptr && declared->ranked && declared->dims.size() == part.size();
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (part[i].is_unknown() || !part_.dims().is_named(part[i])) continue;
      const std::string text = part_.dims().to_text(part[i]);
      if (whole_.dims().to_text(whole[i]) != text && !(has_names && model_.text(declared->dims[i].name) == text))
        return true;
    }
    return false;
  }

  const Model& model_;
  const FactStore &whole_, &part_;
};

class SpentMeter {
 public:
  explicit SpentMeter(std::uint64_t seed) : random_(seed) {
    const char* const rooms = std::getenv("TENSORLINT_SPENT_METERS");
    if (rooms != nullptr) rooms_ = std::strtoull(rooms, nullptr, 10);
  }

  void check(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const bool is_text = path.extension() == ".onnxtxt";
    Result<Model> model = is_text ? read_onnx_text(bytes, path.string()) : read_onnx_bytes(bytes, path.string());
    if (!model) return;  // fixtures of what cannot be read
    Run whole(*model, bytes, {Room::Of::kAll, Meter::kStepsAtLeast});
    ASSERT_FALSE(whole.outcome().is_partial) << path;
    for (const Room& room : rooms(whole.outcome())) {
      SCOPED_TRACE(fmt::format("{} with {}", path.string(), room.text()));
      Run part(*model, bytes, room);
      compare(*model, whole, part, room.of);
      ++runs_;
    }
  }

  std::size_t runs() const { return runs_; }

 private:
  std::vector<Room> rooms(const Outcome& whole) {
    const auto below = [&](std::uint64_t bound) { return random_() % (bound + 1); };
    std::vector<Room> rooms;
    if (rooms_ == 0) {
      rooms = {{Room::Of::kSearch, below(whole.search_steps)},
               {Room::Of::kAll, below(whole.steps)},
               {Room::Of::kReports, below(whole.rule_steps)},
               {random_() % 2 == 0 ? Room::Of::kMemory : Room::Of::kAll, 0}};
      if (rooms[3].of == Room::Of::kMemory) rooms[3].room = below(whole.memory);
      return rooms;
    }
    for (const auto of : {Room::Of::kSearch, Room::Of::kAll, Room::Of::kReports, Room::Of::kMemory}) {
      const std::uint64_t all = of == Room::Of::kSearch    ? whole.search_steps
                                : of == Room::Of::kAll     ? whole.steps
                                : of == Room::Of::kReports ? whole.rule_steps
                                                           : whole.memory;
      rooms.push_back({of, 0});
      for (std::uint64_t room = 1; room < all; room *= 2) rooms.push_back({of, room});
      if (all <= rooms_)
        for (std::uint64_t room = 0; room <= all; ++room) rooms.push_back({of, room});
      else
        for (std::size_t i = 0; i < rooms_; ++i) rooms.push_back({of, below(all)});
    }
    return rooms;
  }

  static void compare(const Model& model, Run& whole, Run& part, Room::Of of) {
    const Outcome &all = whole.outcome(), &some = part.outcome();
    // Of the same mistake a rule that needs less may tell, at the node that fails.
    for (const auto& [finding, node] : some.findings)
      EXPECT_TRUE(all.findings.contains(finding) || all.nodes.contains(node)) << finding << " is found only with less";
    for (const auto& [finding, fix] : some.fixes)
      EXPECT_TRUE(!all.findings.contains(finding) || all.fixes.contains({finding, fix}))
          << finding << ": " << fix << " is proposed only with less";
    // Of the same facts the same is said.
    for (const std::string& note : some.notes)
      EXPECT_TRUE(of != Room::Of::kReports || all.notes.contains(note)) << note << " is noted only with less";
    if (!some.is_partial) {
      EXPECT_EQ(some.check_json, all.check_json);
    }
    const FactComparison facts(model, whole.analysis().facts(), part.analysis().facts());
    for (const ValueId value : model.values.ids(kFirstValue)) {
      if (!is_told(model, whole.analysis(), value)) continue;
      const std::string what =
          facts.differs(whole.analysis().fact_id(value), part.analysis().fact_id(value), model.value(value).type);
      EXPECT_EQ(what, "") << model.name_of(value) << ": " << text_of(whole, value) << " and " << text_of(part, value);
    }
    if (some.has_contract) {
      EXPECT_TRUE(all.has_contract);
      EXPECT_EQ(some.requirements, all.requirements);
    }
  }

  static std::string text_of(const Run& run, ValueId value) {
    const FactStore& facts = run.analysis().facts();
    return facts.to_text(run.analysis().fact_id(value)) + reports::bounds_text(run.analysis().fact(value));
  }

  /// The whole run reaches the value, and does not only guess it.
  static bool is_told(const Model& model, const dataflow::Analysis& analysis, ValueId value) {
    const NodeId producer = model.value(value).producer;
    return analysis.taint(value) == Taint() && (producer == NodeId::kNone || analysis.is_visited(producer));
  }

  std::mt19937_64 random_;
  std::size_t rooms_ = 0, runs_ = 0;
};

void check_folder(std::string_view folder, std::size_t every) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(TENSORLINT_SOURCE_DIR) / folder))
    if (entry.path().extension() == ".onnxtxt" || entry.path().extension() == ".onnx") paths.push_back(entry.path());
  std::ranges::sort(paths);
  ASSERT_FALSE(paths.empty());
  SpentMeter meters(paths.size());
  every *= kEach;
  for (std::size_t i = 0; i < paths.size(); i += every) meters.check(paths[i]);
  EXPECT_GE(meters.runs(), paths.size() / every);
}

TEST(SpentMeter, BreaksNothingInFixturesAboutDtypes) { check_folder("tests/rules/dtype", 1); }
TEST(SpentMeter, BreaksNothingInFixturesAboutGraphs) { check_folder("tests/rules/graph", 1); }
TEST(SpentMeter, BreaksNothingInFixturesAboutLosses) { check_folder("tests/rules/loss", 1); }
TEST(SpentMeter, BreaksNothingInFixturesAboutPlacement) { check_folder("tests/rules/placement", 1); }
TEST(SpentMeter, BreaksNothingInFixturesAboutShapes) { check_folder("tests/rules/shape", 1); }
TEST(SpentMeter, BreaksNothingInFixturesAboutValues) { check_folder("tests/rules/value", 1); }
TEST(SpentMeter, BreaksNothingInModelsWithLosses) { check_folder("tests/models/losses", 4); }
TEST(SpentMeter, BreaksNothingInModelsWithMistakes) { check_folder("tests/models/mistakes", 4); }
TEST(SpentMeter, BreaksNothingInPrograms) { check_folder("tests/models/programs", 16); }
TEST(SpentMeter, BreaksNothingInModelsOfOpenSizes) { check_folder("tests/models/sizes", 4); }
TEST(SpentMeter, BreaksNothingInTrainingSteps) { check_folder("tests/models/steps", 4); }

}  // namespace
}  // namespace tensorlint

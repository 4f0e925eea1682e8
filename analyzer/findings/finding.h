#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/edit.h"
#include "ir/ops/inference.h"

namespace tensorlint::findings {

enum class Severity : std::uint8_t { kInfo, kWarning, kError };

std::string_view to_text(Severity severity);
std::optional<Severity> severity_named(std::string_view name);
std::string_view to_text(ops::Certainty certainty);

/// Whether a fix provably changes no value (safe), or may round or reorder (unsafe; the rule's page says how).
enum class Applicability : std::uint8_t { kSafe, kUnsafe };

std::string_view to_text(Applicability applicability);

/// A place in a program: a line of the user's own code where the exporter left one, else of a model in text.
struct SourceLocation {
  std::string file;        ///< empty: no place is known
  std::uint32_t line = 0;  ///< from 1; 0: not known
  std::uint32_t column = 0;
  std::string source;  ///< the line of code, without its newline; empty when it cannot be had
  bool known() const { return !file.empty(); }
};

struct Note {
  std::string message;
  std::string node;  ///< label of the node it is about; empty for none
  SourceLocation place;
};

struct Fix {
  std::string message;  ///< imperative
  Applicability applicability = Applicability::kUnsafe;
  std::vector<GraphEdit> edits{};  ///< what `tensorlint fix` does; empty: only people can tell how
};

/// What copies between devices cost. Bytes are a number, a formula in the extents' names, or empty where not known.
struct TransferCost {
  std::uint64_t copies = 0, setup_copies = 0;  ///< setup: once, when the model is loaded
  std::string bytes, setup_bytes;
  std::map<std::string, bool> conditions;  ///< for which this holds
};

/// An execution in which devices are mixed: what the open conditions and trip counts are, and where it happens.
struct DeviceWitness {
  std::vector<std::string> devices;        ///< of the two sides
  std::map<std::string, bool> conditions;  ///< by value name; others do not matter
  std::map<std::string, std::int64_t> trip_counts;
  std::size_t left_out = 0;        ///< further conditions and trip counts
  std::int64_t iteration = 0;      ///< from 1; 0 outside loops
  std::vector<std::string> calls;  ///< labels of the calling nodes, outermost first
};

/// What a rule found. Strings are as they came from the input: whatever prints them escapes (escape_for_display).
struct Finding {
  std::string_view rule;  ///< name; static storage
  std::string_view code;
  Severity severity = Severity::kError;
  ops::Certainty certainty = ops::Certainty::kMust;
  std::string path;   ///< of the input
  std::string graph;  ///< "main", "main/body", "domain::function"
  std::string node;   ///< its label; empty when no node is to blame
  std::string op;
  std::string value;   ///< the value that is wrong, else the node's first result
  std::string module;  ///< dotted path of the module the node belongs to; empty when not known
  SourceLocation place;
  std::string message;
  std::vector<Note> notes;
  std::vector<Fix> fixes;
  std::string witness;                   ///< kMay: a concrete case that fails
  std::optional<DeviceWitness> devices;  ///< of rules about placement
  std::optional<TransferCost> cost;      ///< of rules about copies
  std::uint64_t order = 0;               ///< position of the node in the file; findings without a node come last
  std::vector<std::string> causes;       ///< keys that places of one mistake share (group_by_cause); never shown
  std::vector<Finding> also;             ///< other places of the same mistake, sorted; these have none themselves
  std::size_t places() const { return 1 + also.size(); }
};

struct SeverityCounts {
  std::size_t error = 0, warning = 0, info = 0;
  std::size_t& operator[](Severity severity) {
    return severity == Severity::kError ? error : severity == Severity::kWarning ? warning : info;
  }
  std::size_t total() const { return error + warning + info; }
  /// The most severe that was counted; nullopt for none.
  std::optional<Severity> worst() const;
  SeverityCounts& operator+=(const SeverityCounts& other);
  SeverityCounts& operator-=(const SeverityCounts& other);
};

/// The memory that a place takes beside the struct that holds it; that of a note; of a finding, with its other places.
std::size_t memory_of(const SourceLocation& place);
std::size_t memory_of(const Note& note);
std::size_t memory_of(const Finding& finding);

SeverityCounts count(const std::vector<Finding>& findings);
std::size_t count_places(const std::vector<Finding>& findings);

/// Equal ones stay in their order. Findings are large: std::stable_sort would take half of their memory again.
void sort_in_place(std::vector<Finding>& findings, const std::function<bool(const Finding&, const Finding&)>& less);
/// By file, node order, code: the same input gives the same list. What is said twice is said once.
void sort_and_deduplicate(std::vector<Finding>& findings);

}  // namespace tensorlint::findings

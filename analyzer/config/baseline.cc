#include "analyzer/config/baseline.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "analyzer/findings/fingerprint.h"
#include "analyzer/findings/grouping.h"
#include "base/escape.h"
#include "base/paths.h"
#include "base/small_file.h"
#include "base/version.h"

namespace tensorlint::config {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchema = 1;
constexpr std::size_t kMaxBrackets = 8;  // a baseline has 3

}  // namespace

/// Keeps paths, fingerprints and counts while the file is read: a document made of all of it takes thirty times its
/// bytes.
class Baseline::Reader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Reader(Inputs& inputs) : inputs_(inputs) {}

  /// What is wrong, once all is read; empty: nothing.
  std::string_view fault(bool is_json) const {
    if (nests_too_deeply_) return "not a baseline of --write-baseline: nested too deeply";
    if (!is_json || !has_schema_ || !has_findings_) return "not a baseline of --write-baseline";
    if (!is_of_schema_) return "written by another version of tensorlint; renew it with --write-baseline";
    return has_bad_row_ ? "a finding has no path, fingerprint or count" : "";
  }

  bool null() override { return note(false); }
  bool boolean(bool) override { return note(false); }
  bool number_integer(number_integer_t) override { return note(false); }
  bool number_float(number_float_t number, const string_t&) override { return note(number == kSchema); }
  bool number_unsigned(number_unsigned_t number) override {
    if (is_field("count")) count_ = number;
    return note(number == static_cast<number_unsigned_t>(kSchema));
  }
  bool string(string_t& text) override {
    if (is_field("path")) row_path_ = std::move(text);
    if (is_field("fingerprint")) print_ = std::move(text);
    return note(false);
  }
  bool binary(binary_t&) override { return note(false); }
  bool start_object(std::size_t) override {
    if (depth_ == 0) is_object_ = true;
    if (is_in_findings_ && depth_ == 2) {
      is_in_row_ = true;
      row_path_.clear();
      print_.clear();
      count_.reset();
    } else {
      note(false);
    }
    return enter();
  }
  bool start_array(std::size_t) override {
    note(false);
    if (is_object_ && depth_ == 1 && key_ == "findings") {
      has_findings_ = is_in_findings_ = true;
      has_bad_row_ = false;
      inputs_.clear();
    }
    return enter();
  }
  bool key(string_t& name) override {
    if (depth_ == 1) key_ = name;
    if (!is_in_row_ || depth_ != 3) return true;
    field_ = name;
    // Of a field that is given twice the last one counts.
    if (is_field("path")) row_path_.clear();
    if (is_field("fingerprint")) print_.clear();
    if (is_field("count")) count_.reset();
    return true;
  }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  bool is_field(std::string_view name) const { return is_in_row_ && depth_ == 3 && field_ == name; }

  /// Any value, before it is entered.
  bool note(bool is_schema) {
    if (is_object_ && depth_ == 1 && key_ == "schema") {
      has_schema_ = true;
      is_of_schema_ = is_schema;
    }
    if (is_object_ && depth_ == 1 && key_ == "findings") has_findings_ = false;
    if (is_in_findings_ && depth_ == 2) has_bad_row_ = true;
    return true;
  }
  bool enter() {
    nests_too_deeply_ = ++depth_ > kMaxBrackets;
    return !nests_too_deeply_;
  }
  bool leave() {
    --depth_;
    if (depth_ == 2 && is_in_row_) {
      is_in_row_ = false;
      if (row_path_.empty() || print_.empty() || !count_)
        has_bad_row_ = true;
      else
        inputs_[row_path_].by_print[print_].count = *count_;
    }
    if (depth_ == 1) is_in_findings_ = false;
    return true;
  }

  Inputs& inputs_;
  std::size_t depth_ = 0;
  bool is_object_ = false, is_in_findings_ = false, is_in_row_ = false;
  bool has_schema_ = false, is_of_schema_ = false, has_findings_ = false, has_bad_row_ = false;
  bool nests_too_deeply_ = false;
  std::string key_, field_, row_path_, print_;
  std::optional<std::size_t> count_;
};

Baseline::Baseline(std::string path) : path_(std::move(path)) {}

Baseline Baseline::at(std::string path) const {
  Baseline same(std::move(path));
  same.inputs_ = inputs_;
  return same;
}

std::string Baseline::key(const std::string& input) const { return relative_path(input, folder_of(path_)); }

Result<Baseline> Baseline::read(const std::string& path, std::size_t most_bytes) {
  const Result<std::string> text = read_small_file(path, most_bytes);
  if (!text) return Error{fmt::format("baseline {}: {}", path, text.error().message), {}};
  Baseline baseline(path);
  Reader reader(*baseline.inputs_);
  const bool is_json = nlohmann::json::sax_parse(*text, &reader);
  if (const std::string_view fault = reader.fault(is_json); !fault.empty())
    return Error{fmt::format("baseline {}: {}", path, fault), {}};
  for (auto& [input, entries] : *baseline.inputs_)
    for (const auto& [print, entry] : entries.by_print)
      if (__builtin_add_overflow(entries.places, entry.count, &entries.places))
        entries.places = std::numeric_limits<decltype(entries.places)>::max();
  return baseline;
}

void Baseline::add(const std::string& input, std::span<const findings::Finding> findings) {
  Entries& entries = (*inputs_)[key(input)];
  const auto add_place = [&entries](const findings::Finding& place) {
    ++entries.places;
    Entry& entry = entries.by_print[findings::fingerprint(place)];
    if (entry.count++ == 0) entry = {std::string(place.rule), escape_for_display(place.message, 500), 1};
  };
  for (const findings::Finding& finding : findings) {
    add_place(finding);
    for (const findings::Finding& place : finding.also) add_place(place);
  }
}

std::string Baseline::to_json() const {
  Json findings = Json::array();
  for (const auto& [input, entries] : *inputs_)
    for (const auto& [print, entry] : entries.by_print)
      findings.push_back({{"path", input},
                          {"rule", entry.rule},
                          {"fingerprint", print},
                          {"count", entry.count},
                          {"message", entry.message}});
  const Json json = {{"schema", kSchema},
                     {"tool", {{"name", "tensorlint"}, {"version", kVersion}}},
                     {"findings", std::move(findings)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Baseline::Known Baseline::take_out(const std::string& input, std::vector<findings::Finding>& findings) const {
  Known known;
  const auto at = inputs_->find(key(input));
  if (at == inputs_->end()) return known;
  const Entries& entries = at->second;
  std::map<const Entry*, std::size_t> taken;
  const auto is_known = [&](const findings::Finding& place) {
    const auto found = entries.by_print.find(findings::fingerprint(place));
    if (found == entries.by_print.end()) return false;
    std::size_t& count = taken[&found->second];
    if (count == found->second.count) return false;
    ++count;
    ++known.found;
    return true;
  };
  std::erase_if(findings, [&](findings::Finding& finding) {
    const bool first = is_known(finding);
    std::erase_if(finding.also, is_known);
    return first && !findings::drop_first_place(finding);
  });
  known.gone = entries.places - known.found;
  return known;
}

}  // namespace tensorlint::config

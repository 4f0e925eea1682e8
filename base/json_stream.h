#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/output.h"

namespace tensorlint {

/// An object that is written member by member, and its lists element by element: a library's document of a whole
/// report takes several times the memory of its text.
class JsonStream {
 public:
  explicit JsonStream(const TextSink& out) : out_(out) { out_("{"); }

  void member(std::string_view name, const nlohmann::ordered_json& value) {
    begin(name);
    out_(indented(value, 2));
  }
  void begin_list(std::string_view name) {
    begin(name);
    out_("[");
    is_first_element_ = true;
  }
  void element(const nlohmann::ordered_json& value) {
    out_(is_first_element_ ? "\n    " : ",\n    ");
    out_(indented(value, 4));
    is_first_element_ = false;
  }
  void end_list() { out_(is_first_element_ ? "]" : "\n  ]"); }
  void end() { out_("\n}\n"); }

 private:
  void begin(std::string_view name) {
    out_(fmt::format("{}\n  \"{}\": ", is_first_member_ ? "" : ",", name));
    is_first_member_ = false;
  }

  static std::string indented(const nlohmann::ordered_json& value, std::size_t blanks) {
    const std::string text = value.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    std::string indented;
    indented.reserve(text.size());
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
      indented.append(text, begin, end - begin);
      if (indented.back() == '\n') indented.append(blanks, ' ');
      begin = end;
    }
    return indented;
  }

  const TextSink& out_;
  bool is_first_member_ = true, is_first_element_ = true;
};

}  // namespace tensorlint

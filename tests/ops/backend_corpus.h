// The corpus of backend_corpus.py: ONNX's backend tests, as models and what they record.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <ios>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "ir/readers/onnx/reader.h"

namespace tensorlint::ops {

using Json = nlohmann::json;

inline std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  EXPECT_TRUE(in) << path;
  std::string text(static_cast<std::size_t>(std::max<std::streamoff>(in.tellg(), 0)), '\0');
  in.seekg(0).read(text.data(), static_cast<std::streamsize>(text.size()));
  return text;
}

struct BackendCase {
  std::string name, variant;
  std::string op;  ///< "-" where the main graph has more than one node
  std::size_t offset = 0, length = 0;
  std::string record;

  /// Its "symbols" and "outputs". Parsed at each call, which takes longer than all else for the models of one letter.
  Json parsed() const { return Json::parse(record); }
  std::string title() const { return name + " " + variant; }
};

struct Corpus {
  std::string models = read_all(TENSORLINT_BACKEND_CORPUS "/models");
  std::vector<BackendCase> cases;

  Corpus() {
    std::istringstream lines(read_all(TENSORLINT_BACKEND_CORPUS "/cases"));
    for (BackendCase each; lines >> each.name >> each.variant >> each.op >> each.offset >> each.length &&
                           std::getline(lines, each.record);)
      cases.push_back(each);
  }

  static const Corpus& get() {
    static const Corpus corpus;
    return corpus;
  }
};

inline Result<Model> model_of(const BackendCase& entry) {
  return read_onnx_bytes(std::string_view(Corpus::get().models).substr(entry.offset, entry.length), "test.onnx");
}

}  // namespace tensorlint::ops

// The corpus of backend_corpus.py: ONNX's backend tests, as models and what they record.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "ir/readers/onnx/reader.h"

namespace tensorlint::ops {

using Json = nlohmann::json;

inline std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Corpus {
  std::string models = read_all(std::string(TENSORLINT_BACKEND_CORPUS) + "/models");
  Json cases = Json::parse(read_all(std::string(TENSORLINT_BACKEND_CORPUS) + "/cases.json"));

  static const Corpus& get() {
    static const Corpus corpus;
    return corpus;
  }
};

inline Result<Model> model_of(const Json& entry) {
  const std::string_view bytes = std::string_view(Corpus::get().models)
                                     .substr(entry["offset"].get<std::size_t>(), entry["length"].get<std::size_t>());
  return read_onnx_bytes(bytes, "test.onnx");
}

}  // namespace tensorlint::ops

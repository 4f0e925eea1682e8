#include "ir/text/printer.h"
#include "ir/graph/model_builder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "ir/readers/onnx/reader.h"
#include "ir/text/reader.h"
#include "tests/sanitized.h"

namespace tensorlint {
namespace {

std::string printed(std::string_view text, const TextOptions& options = {}) {
  const Result<Model> model = read_onnx_text(text, "m.onnxtxt");
  if (!model) {
    ADD_FAILURE() << model.error().message;
    return {};
  }
  return to_text(*model, options);
}

/// All that the syntax knows, as the printer writes it.
constexpr std::string_view kEverything = R"(<
  ir_version: 10,
  opset_import: ["" : 21, "my-domain" : 1, "ai.onnx.ml" : 3],
  producer_name: "maker",
  producer_version: "1 \"b\" \\",
  metadata_props: ["tensorlint.device:x": "cuda:0", "k": ""]
>
"a graph" (float[N, "a b", ?, -1, 0] x, bool c, map(int64, seq(float[])) "float", untyped, opaque() o) => (float[N] "y/1", bool c)
<
  float[1] x = {1},
  float[4] w = {1, -2.5, nan, -inf},
  string[2] s = {"a\"#", "\\"},
  float16[2] h = {15360, 49152},
  int4[3] i = {-8, 7, -1},
  float6e2m3[3] j = {63, 0, 32},
  complex64[1] z = {1, -2},
  uint64[1] u = {18446744073709551615},
  float[1000, 1000] e = ["location": "w.bin", "offset": "4096", "length": "4000000"],
  sparse_tensor(float[3, 4]) sp = {float[2] {1, 2}, int64[2] {0, 5}},
  sparse_tensor(float[3, 4]) v
>
{
  ["n \"1"] v, "", "b:0" = "my-domain".Thing:variant <axis = -1, f = 0.5, g = 2.0, h = nan, s = "up"> (x, "", w)
  = ai.onnx.ml.Sink <is = [1, -2], fs = [1.0, 1e+20, -0.0], ss = ["a", "b\\"], none: ints = [], t = float[2] "t.1" {1, 2}, u = int64 {3}, ext = float = ["location": "w.bin"], sp = sparse_tensor(float[3]) {float[1] {1}, int64[1] {2}}, tp = seq(float[N]), tps: type_protos = [float, int64[]], ts: tensors = [float[1] {1}, int8[0] {}], "odd name" = 1> ()
  "y/1" = If (c) <then_branch = yes () => (float[] r) {
    r = If (c) <then_branch = "in ner" () => (float[2] q)
    <
      float[2] k = {1, 2}
    >
    {
      q = Add (x, k)
    }, else_branch = "" () => (x) {
    }>
  }, more: graphs = [g1 () => () {
  }, g2 (i) => (i) {
  }], last = 1>
}

<
  domain: "my-domain",
  overload: "variant",
  opset_import: ["" : 18]
>
Thing <alpha, beta = 1.5, body = g () => () {
}, gamma = 2> (float[K] a, b) => (float t)
<
  float[K] d
>
{
  d = Elu <alpha: float = @alpha, "odd name" = @beta> (a)
  t = Neg (d)
}

<
  domain: ""
>
plain () => () {
}
)";

TEST(TextPrinter, PrintsWhatWasRead) { EXPECT_EQ(printed(kEverything), kEverything); }

TEST(TextPrinter, ShortensConstantsOnlyWhenAsked) {
  constexpr std::string_view kText =
      "g () => () <int64[20] w = {0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19}, int64[2] v = {1, 2}> {}";
  EXPECT_NE(printed(kText).find("17, 18, 19}"), std::string::npos);
  const std::string shortened = printed(kText, {.max_elements = 2});
  EXPECT_NE(shortened.find("int64[20] w = {0, 1, ...}"), std::string::npos) << shortened;
  EXPECT_NE(shortened.find("int64[2] v = {1, 2}"), std::string::npos) << shortened;
}

TEST(TextPrinter, PrintsMalformedPieces) {
  for (const std::string_view text : {
           "g (float[-7] a, seq() b, dtype_99[2] c, undefined d, map(undefined, ) e) => () {}",
           "g () => () <float[2, 2] w = {1, 2, 3}, float[-1] v = {1}, dtype_minus_5[3] u = {}, int4[9] i = {1}> {}",
           "g () => () { x = Op <a : undefined, \"\" = 1, l : sparse_tensors = []> () x = Op () }",
           "\"\" (float \"\") => (\"\", nowhere) <float nowhere, int64 other> { = \"\" (other) }",
       }) {
    const std::string once = printed(text);
    EXPECT_EQ(printed(once), once);
  }
}

TEST(TextPrinter, PrintsTheModelsOfTheRepository) {
  std::size_t count = 0, number = 0;
  for (const std::string_view folder : {"samples", "tests"}) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::filesystem::path(TENSORLINT_SOURCE_DIR) / folder)) {
      if (entry.path().extension() != ".onnx" || number++ % stride(9) != 0) continue;
      const Result<Model> model = read_onnx_file(entry.path().string());
      if (!model) continue;  // broken on purpose
      const std::string text = to_text(*model);
      EXPECT_EQ(printed(text), text) << entry.path();
      ++count;
    }
  }
  EXPECT_GE(count, 10u);
}

// A binary model's typed fields: what the packed bytes of each field mean as elements.
TEST(TextPrinter, PrintsTypedFields) {
  const auto elements_of = [](std::int32_t code, std::int64_t count, TypedField field, std::string_view bytes) {
    ModelBuilder builder;
    builder.add_opset_imports({});
    Graph graph;
    graph.name = builder.name("g");
    builder.add_graph(std::move(graph));
    builder.begin_nodes(GraphId::kMain);
    Tensor& tensor = *builder.new_tensor();
    tensor.dtype_code = code;
    tensor.dims = builder.keep_ints(std::span(&count, 1));
    tensor.typed_field = field;
    tensor.typed = bytes;
    builder.add_initializer(GraphId::kMain, builder.name("w"), &tensor, nullptr);
    const std::string text = to_text(builder.finish());
    const std::size_t start = text.find("w = ") + 4;
    return text.substr(start, text.find('}', start) + 1 - start);
  };
  using namespace std::string_view_literals;
  EXPECT_EQ(elements_of(7, 2, TypedField::kInt64, "\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv), "{5, -1}");
  EXPECT_EQ(elements_of(3, 2, TypedField::kInt32, "\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv), "{5, -1}");
  EXPECT_EQ(elements_of(2, 1, TypedField::kInt32, "\xff\x01"sv), "{255}");
  EXPECT_EQ(elements_of(10, 1, TypedField::kInt32, "\x80\x78"sv), "{15360}");
  EXPECT_EQ(elements_of(22, 3, TypedField::kInt32, "\x78\x0f"sv), "{-8, 7, -1}");
  EXPECT_EQ(elements_of(13, 1, TypedField::kUint64, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv),
            "{18446744073709551615}");
  EXPECT_EQ(elements_of(1, 1, TypedField::kFloat, "\x00\x00\x80\x3f"sv), "{1}");
  EXPECT_EQ(elements_of(1, 1, TypedField::kInt32, "\x01"sv), "{}");                   // data in a field of another type
  EXPECT_EQ(elements_of(1, 2, TypedField::kFloat, "\x00\x00\x80\x3f\x00"sv), "{1}");  // a cut element
}

}  // namespace
}  // namespace tensorlint

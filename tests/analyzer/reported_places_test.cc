// What a finding says of where it is: the lines of code that led to a node, and extents that an exporter has named.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/findings/finding.h"
#include "analyzer/pipeline/pipeline.h"
#include "ir/readers/onnx/reader.h"
#include "ir/text/reader.h"
#include "onnx.pb.h"

namespace tensorlint {
namespace {

std::vector<findings::Finding> findings_of(const Model& model) {
  const dataflow::Analysis analysis = dataflow::analyse(model, {});
  return pipeline::Pipeline(analysis, {}).check().findings;
}

enum class Frame { kUser, kLibrary, kLayer, kModule, kPytorch, kGenerated };
constexpr std::size_t kFrames = 6;

std::string file_of(Frame frame, std::size_t depth) {
  constexpr std::string_view kPackages = "/usr/lib/python3/site-packages/";
  switch (frame) {
    case Frame::kUser:
      return fmt::format("train{}.py", depth);
    case Frame::kLibrary:
      return fmt::format("{}timm/layers{}.py", kPackages, depth);
    case Frame::kLayer:
      return fmt::format("{}torch/nn/modules/linear{}.py", kPackages, depth);
    case Frame::kModule:
      return fmt::format("{}torch/nn/modules/module.py", kPackages);
    case Frame::kPytorch:
      return fmt::format("{}torch/_dynamo/frame{}.py", kPackages, depth);
    case Frame::kGenerated:
      return fmt::format("<eval_with_key>.{}", depth);
  }
  return {};
}

/// Whose operation fails, and was reached through these frames.
std::string model_with(const std::vector<Frame>& frames) {
  ::onnx::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(21);
  ::onnx::GraphProto* graph = model.mutable_graph();
  graph->set_name("g");
  for (const auto& [name, extent] : {std::pair("a", 2), std::pair("b", 3)}) {
    ::onnx::ValueInfoProto* input = graph->add_input();
    input->set_name(name);
    ::onnx::TypeProto_Tensor* type = input->mutable_type()->mutable_tensor_type();
    type->set_elem_type(1);
    type->mutable_shape()->add_dim()->set_dim_value(extent);
  }
  ::onnx::NodeProto* node = graph->add_node();
  node->set_op_type("Add");
  node->add_input("a");
  node->add_input("b");
  node->add_output("y");
  ::onnx::ValueInfoProto* output = graph->add_output();
  output->set_name("y");
  output->mutable_type()->mutable_tensor_type()->set_elem_type(1);
  ::onnx::StringStringEntryProto* entry = node->add_metadata_props();
  entry->set_key("pkg.torch.onnx.stack_trace");
  for (std::size_t i = 0; i < frames.size(); ++i)
    *entry->mutable_value() +=
        fmt::format("  File \"{}\", line {}, in forward\n    step_{}(x)\n", file_of(frames[i], i), i + 1, i);
  return model.SerializeAsString();
}

/// Of the frames below the user's: the innermost of another library, else the innermost of PyTorch's layers.
std::size_t library_frame(const std::vector<Frame>& frames, std::size_t own) {
  for (const Frame wanted : {Frame::kLibrary, Frame::kLayer})
    for (std::size_t i = frames.size(); i-- > own + 1;)
      if (frames[i] == wanted) return i;
  return frames.size();
}

TEST(ReportedPlaces, AreTheUsersLineAndTheLibrarysBelowIt) {
  for (std::size_t length = 1; length <= 4; ++length) {
    std::size_t count = 1;
    for (std::size_t i = 0; i < length; ++i) count *= kFrames;
    for (std::size_t number = 0; number < count; ++number) {
      std::vector<Frame> frames;
      for (std::size_t rest = number; frames.size() < length; rest /= kFrames)
        frames.push_back(static_cast<Frame>(rest % kFrames));
      std::size_t own = length;
      for (std::size_t i = 0; i < length; ++i)
        if (frames[i] == Frame::kUser) own = i;
      const std::string bytes = model_with(frames);
      const Result<Model> model = read_onnx_bytes(bytes, "m.onnx");
      ASSERT_TRUE(model);
      const std::vector<findings::Finding> found = findings_of(*model);
      ASSERT_EQ(found.size(), 1U);
      const std::string trace = fmt::format("trace {} of length {}", number, length);
      // None is the user's: the innermost one of a file.
      for (std::size_t i = 0; own == length && i < length; ++i)
        if (frames[length - 1 - i] != Frame::kGenerated) own = length - 1 - i;
      if (own == length) {
        EXPECT_FALSE(found[0].place.known()) << trace;
        continue;
      }
      EXPECT_EQ(found[0].place.file, file_of(frames[own], own)) << trace;
      EXPECT_EQ(found[0].place.line, own + 1) << trace;
      const findings::Note *library = nullptr, *caller = nullptr;
      for (const findings::Note& note : found[0].notes) {
        if (note.message == "in this library code, called from the line above") library = &note;
        if (note.message == "called from here") caller = &note;
      }
      const bool calls = own > 0 && frames[own] == Frame::kUser && frames[own - 1] == Frame::kUser;
      ASSERT_EQ(caller != nullptr, calls) << trace;
      if (calls) {
        EXPECT_EQ(caller->place.line, own) << trace;
      }
      const std::size_t at = library_frame(frames, own);
      ASSERT_EQ(library != nullptr, at < length) << trace;
      if (library == nullptr) continue;
      EXPECT_EQ(library->place.file, file_of(frames[at], at)) << trace;
      EXPECT_EQ(library->place.line, at + 1) << trace;
      EXPECT_EQ(library->place.source, fmt::format("step_{}(x)", at)) << trace;
    }
  }
}

TEST(ReportedPlaces, AreThoseOfItsUseForWhatRunsWithoutGradients) {
  ::onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(model_with({Frame::kGenerated})));
  ::onnx::GraphProto* graph = model.mutable_graph();
  ::onnx::NodeProto* use = graph->add_node();
  use->CopyFrom(graph->node(0));
  use->set_op_type("Exp");
  use->clear_input();
  use->add_input("y");
  use->set_output(0, "z");
  use->mutable_metadata_props(0)->set_value("File \"train.py\", line 7, in forward\n    z = y.exp()\n");
  graph->mutable_output(0)->set_name("z");
  const std::string bytes = model.SerializeAsString();
  const Result<Model> read = read_onnx_bytes(bytes, "m.onnx");
  ASSERT_TRUE(read);
  const auto found = findings_of(*read);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].op, "Add");
  EXPECT_EQ(found[0].place.file, "train.py");
  EXPECT_EQ(found[0].place.line, 7U);
}

TEST(ReportedPlaces, AreCellsOfANotebook) {
  ::onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(model_with({Frame::kUser})));
  model.mutable_graph()->mutable_node(0)->mutable_metadata_props(0)->set_value(
      "File \"<ipython-input-3-1a2b>\", line 4, in forward\n    return a + b\nFile "
      "\"/usr/lib/python3/site-packages/torch/nn/modules/linear.py\", line 134, in forward\n    x\n");
  const std::string bytes = model.SerializeAsString();
  const Result<Model> read = read_onnx_bytes(bytes, "m.onnx");
  ASSERT_TRUE(read);
  const auto found = findings_of(*read);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].place.file, "<ipython-input-3-1a2b>");
  EXPECT_EQ(found[0].place.source, "return a + b");
}

std::vector<findings::Finding> findings_with_doc_string(const std::string& doc_string) {
  ::onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(model_with({})));
  model.mutable_graph()->mutable_node(0)->set_doc_string(doc_string);
  const std::string bytes = model.SerializeAsString();
  const Result<Model> read = read_onnx_bytes(bytes, "m.onnx");
  EXPECT_TRUE(read);
  return read ? findings_of(*read) : std::vector<findings::Finding>();
}

TEST(ReportedPlaces, AreThoseOfADocStringOfTheTorchScriptExporter) {
  constexpr std::string_view kTorch = "/usr/lib/python3/site-packages/torch/";
  const std::string traced = fmt::format(
      "{0}nn/modules/linear.py(134): forward\n{0}nn/modules/module.py(1789): _call_impl\nmodel (2).py(17): loss\n"
      "train.py(41): forward\n{0}nn/modules/module.py(1789): _call_impl\n{0}jit/_trace.py(131): wrapper\n"
      "{0}onnx/__init__.py(334): export\nexport.py(9): <module>\n",
      kTorch);
  const auto found = findings_with_doc_string(traced);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].place.file, "model (2).py");
  EXPECT_EQ(found[0].place.line, 17U);
  ASSERT_FALSE(found[0].notes.empty());
  EXPECT_EQ(found[0].notes[0].place.file, fmt::format("{}nn/modules/linear.py", kTorch));
  // The script that exports is no place of the model.
  const auto layer = findings_with_doc_string(fmt::format(
      "{0}nn/modules/linear.py(134): forward\n{0}jit/_trace.py(131): wrapper\nexport.py(9): <module>\n", kTorch));
  ASSERT_EQ(layer.size(), 1U);
  EXPECT_EQ(layer[0].place.file, fmt::format("{}nn/modules/linear.py", kTorch));
}

TEST(ReportedPlaces, DoNotTakeOtherDocStringsForAStack) {
  for (const std::string_view text :
       {"", "\n\n", "adds two numbers", "(3): f", "train.py(): f", "train.py(x): f", "train.py(0): f",
        "train.py(99999999999999999999): f", "train.py(3) f", "a.py(3): f\nand more"}) {
    const auto found = findings_with_doc_string(std::string(text));
    ASSERT_EQ(found.size(), 1U) << text;
    EXPECT_EQ(found[0].place.file, "") << text;
  }
}

TEST(ReportedPlaces, ExplainWhatAnExporterHasNamed) {
  const auto note_about = [](std::string_view symbol) {
    const Result<Model> model =
        read_onnx_text(fmt::format("<ir_version: 10, opset_import: [\"\" : 21]>\n"
                                   "g (float[2] z, float[3, \"{}\"] x, float[5] w) => (float y) {{\n"
                                   "  h = Transpose (x)\n  y = Add (h, w)\n}}\n",
                                   symbol),
                       "m.onnxtxt");
    EXPECT_TRUE(model) << symbol;
    std::string text;
    if (!model) return text;
    for (const findings::Finding& finding : findings_of(*model))
      for (const findings::Note& note : finding.notes)
        if (note.message.find("is axis") != std::string::npos) text += note.message;
    return text;
  };
  for (const std::string_view made_up :
       {"s0", "s77", "u0", "u12", "unk__3", "unk__214", "p2o.DynamicDimension.1", "DynamicDimension.0"})
    EXPECT_EQ(note_about(made_up), fmt::format("{} is axis 1 of `x`", made_up));
  for (const std::string_view own :
       {"s", "u", "batch", "s7a", "batch1", "ss1", "n2", "unk_3", "unk__", "DynamicDimension.", "DynamicDimension.1.x"})
    EXPECT_EQ(note_about(own), "") << own;
}

}  // namespace
}  // namespace tensorlint

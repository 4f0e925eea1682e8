#include "ir/readers/onnx/external_data.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "ir/readers/onnx/reader.h"
#include "tests/readers/temp_folder.h"
#include "tests/readers/wire_writer.h"

namespace tensorlint {
namespace {

using wire::Message;
using Texts = std::vector<std::string>;

Message entry(std::string_view key, std::string_view value) { return Message().bytes(1, key).bytes(2, value); }

/// float32 [4] in `location`.
Message external(std::string_view name, std::string_view location, std::string_view offset = "",
                 std::string_view length = "") {
  Message tensor =
      Message().varint(1, 4).varint(2, 1).bytes(8, name).bytes(13, entry("location", location)).varint(14, 1);
  if (!offset.empty()) tensor.bytes(13, entry("offset", offset));
  if (!length.empty()) tensor.bytes(13, entry("length", length));
  return tensor;
}

Texts faults_of(const std::string& path, const std::vector<Message>& tensors) {
  Message graph;
  for (const Message& tensor : tensors) graph.bytes(5, tensor);
  const auto bytes = std::make_shared<const std::string>(wire::model(graph).text());
  const Result<Model> model = read_onnx_bytes(*bytes, path, bytes);
  EXPECT_TRUE(model.ok());
  Texts messages;
  for (const StructureFault& fault : check_external_data(*model)) {
    EXPECT_EQ(fault.kind, StructureFault::Kind::kBrokenExternalData);
    EXPECT_NE(fault.tensor, nullptr);
    messages.push_back(fault.message);
  }
  return messages;
}

TEST(ExternalData, AcceptsWhatFits) {
  const TempFolder folder;
  folder.write("w.bin", std::string(64, '\0'));
  folder.write("sub/deep/w.bin", std::string(64, '\0'));
  const std::string model = folder.file("model.onnx");
  EXPECT_EQ(faults_of(model, {external("a", "w.bin"), external("b", "w.bin", "48", "16"),
                              external("c", "./sub//deep/w.bin", "0", "16")}),
            Texts{});
}

TEST(ExternalData, ChecksRanges) {
  const TempFolder folder;
  folder.write("w.bin", std::string(64, '\0'));
  const std::string model = folder.file("model.onnx");
  const auto fault = [&](std::string_view offset, std::string_view length) {
    const Texts messages = faults_of(model, {external("w", "w.bin", offset, length)});
    return messages.size() == 1 ? messages[0] : fmt::format("{} faults", messages.size());
  };
  EXPECT_EQ(fault("49", "16"), "tensor `w`: external data ends at byte 65, the file `w.bin` has 64");
  EXPECT_EQ(fault("49", ""), "tensor `w`: external data ends at byte 65, the file `w.bin` has 64");
  EXPECT_EQ(fault("9223372036854775807", "16"),
            "tensor `w`: external data ends at byte 9223372036854775823, the file `w.bin` has 64");
  EXPECT_EQ(fault("0", "12"), "tensor `w`: external data of 12 bytes where dims and dtype take 16");
  for (const std::string_view text :
       {"-1", "+1", " 1", "1 ", "0x10", "1e3", "9223372036854775808", "99999999999999999999999", "one"}) {
    EXPECT_EQ(fault(text, ""), fmt::format("tensor `w`: external offset `{}` is not a number of bytes", text));
    EXPECT_EQ(fault("0", text), fmt::format("tensor `w`: external length `{}` is not a number of bytes", text));
  }
  // Given, and empty: onnxruntime reads no number there.
  const Message bare = external("w", "w.bin");
  EXPECT_EQ(faults_of(model, {Message().raw(bare).bytes(13, entry("length", ""))}),
            Texts{"tensor `w`: external length `` is not a number of bytes"});
  EXPECT_EQ(faults_of(model, {Message().raw(bare).bytes(13, entry("offset", ""))}),
            Texts{"tensor `w`: external offset `` is not a number of bytes"});
  EXPECT_EQ(faults_of(model, {Message().raw(bare).bytes(13, Message().bytes(1, "length"))}),
            Texts{"tensor `w`: external length `` is not a number of bytes"});
}

TEST(ExternalData, StaysInTheModelsFolder) {
  const TempFolder folder;
  folder.write("w.bin", std::string(64, '\0'));
  folder.write("models/real/w.bin", std::string(64, '\0'));
  folder.link("models/up", "../w.bin");
  folder.link("models/inside", "real/w.bin");
  folder.link("models/real/back", "../inside");
  folder.link("models/folder", "real");
  folder.link("models/absolute", "/etc/passwd");
  folder.link("models/absolute_inside", folder.file("models/real/w.bin"));
  folder.link("models/loop", "loop");
  folder.link("models/outside", "..");
  ASSERT_EQ(::mkfifo(folder.file("models/fifo").c_str(), 0600), 0);
  const std::string model = folder.file("models/model.onnx");
  const auto fault = [&](std::string_view location) {
    const Texts messages = faults_of(model, {external("w", location)});
    return messages.empty() ? std::string() : messages[0];
  };
  EXPECT_EQ(fault("inside"), "");
  EXPECT_EQ(fault("real/back"), "");
  EXPECT_EQ(fault("folder/w.bin"), "");
  EXPECT_EQ(fault("absolute_inside"), "");
  const auto leaves = [](std::string_view location) {
    return fmt::format("tensor `w`: external data `{}` leads out of the model's folder", location);
  };
  EXPECT_EQ(fault("../w.bin"), leaves("../w.bin"));
  EXPECT_EQ(fault("real/../../w.bin"), leaves("real/../../w.bin"));
  EXPECT_EQ(fault("up"), leaves("up"));
  EXPECT_EQ(fault("absolute"), leaves("absolute"));
  EXPECT_EQ(fault("outside/w.bin"), leaves("outside/w.bin"));
  EXPECT_EQ(fault("/etc/passwd"), "tensor `w`: external data `/etc/passwd` is an absolute path");
  EXPECT_EQ(fault(""), "tensor `w`: external data without a location");
  EXPECT_EQ(fault(std::string_view("w.bin\0.txt", 10)),
            "tensor `w`: external data whose location has a zero byte in it");
  EXPECT_EQ(fault("real"), "tensor `w`: external data `real` is not a regular file");
  EXPECT_EQ(fault("fifo"), "tensor `w`: external data `fifo` is not a regular file");
  EXPECT_EQ(fault("."), "tensor `w`: external data `.` is not a regular file");
  EXPECT_EQ(fault("real/"), "tensor `w`: external data `real/` is not a regular file");
  EXPECT_EQ(fault("loop"), "tensor `w`: external data `loop`: Too many levels of symbolic links");
  EXPECT_EQ(fault("none"), "tensor `w`: external data `none`: No such file or directory");
  EXPECT_EQ(fault(std::string(5000, 'a')), "tensor `w`: external data whose location is longer than any path");
}

TEST(ExternalData, FollowsTheLinksOfAModelHubsCache) {
  const TempFolder folder;
  folder.write("models--org--name/blobs/abc", std::string(64, '\0'));
  folder.write("models--org--name/secret/abc", std::string(64, '\0'));
  folder.link("models--org--name/snapshots/rev/model.onnx_data", "../../blobs/abc");
  folder.link("models--org--name/snapshots/rev/onnx/model.onnx_data", "../../../blobs/abc");
  folder.link("models--org--name/snapshots/rev/other", "../../secret/abc");
  folder.link("models--org--name/snapshots/rev/below", "../../blobs/../secret/abc");
  folder.link("elsewhere/a/b/model.onnx_data", "../../blobs/abc");
  folder.write("elsewhere/blobs/abc", std::string(64, '\0'));
  const auto count = [&](const std::string& model, std::string_view location) {
    return faults_of(folder.file(model), {external("w", location)}).size();
  };
  EXPECT_EQ(count("models--org--name/snapshots/rev/model.onnx", "model.onnx_data"), 0U);
  EXPECT_EQ(count("models--org--name/snapshots/rev/model.onnx", "onnx/model.onnx_data"), 0U);
  EXPECT_EQ(count("models--org--name/snapshots/rev/onnx/model.onnx", "model.onnx_data"), 0U);
  EXPECT_EQ(count("models--org--name/snapshots/rev/model.onnx", "other"), 1U);
  EXPECT_EQ(count("models--org--name/snapshots/rev/model.onnx", "below"), 1U);
  // No `snapshots` beside `blobs`: no cache of a hub.
  EXPECT_EQ(count("elsewhere/a/b/model.onnx", "model.onnx_data"), 1U);
}

TEST(ExternalData, ReportsAMissingFileOnce) {
  const TempFolder folder;
  const std::vector<Message> tensors = {external("a", "none.bin"), external("b", "none.bin"),
                                        external("c", "none.bin")};
  EXPECT_EQ(faults_of(folder.file("model.onnx"), tensors),
            Texts{"tensor `a`: external data `none.bin`: No such file or directory (2 more tensors are there)"});
}

TEST(ExternalData, ChecksAttributesToo) {
  const TempFolder folder;
  const Message node = wire::node("Constant", {}, {"y"})
                           .bytes(5, Message().bytes(1, "value").bytes(5, external("t", "none.bin")).varint(20, 4));
  const std::string path = folder.write("model.onnx", wire::model(Message().bytes(1, node)));
  const Result<Model> model = read_onnx_file(path);
  ASSERT_TRUE(model.ok());
  const auto faults = check_external_data(*model);
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].node, NodeId{0});
}

TEST(ExternalData, StopsAfterAThousandFaults) {
  const TempFolder folder;
  folder.write("w.bin", "");
  std::vector<Message> tensors;
  for (int i = 0; i < 1500; ++i) tensors.push_back(external(fmt::format("w{}", i), "w.bin"));
  EXPECT_EQ(faults_of(folder.file("model.onnx"), tensors).size(), 1000U);
}

TEST(ExternalData, OpensFilesForReading) {
  const TempFolder folder;
  folder.write("w.bin", "weights");
  const Result<ExternalFile> file = open_external_file(folder.file("model.onnx"), "w.bin");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->size(), 7U);
  EXPECT_GE(file->descriptor(), 0);
  EXPECT_FALSE(open_external_file(folder.file("none/model.onnx"), "w.bin").ok());
}

}  // namespace
}  // namespace tensorlint

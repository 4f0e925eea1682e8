#include "ir/ops/device_rule.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "ir/ops/inference.h"

namespace tensorlint::ops {
namespace {

/// Devices by name; "cpu|cuda:0" where two have met that differ.
struct Names {
  using Device = std::string;
  static Device host() { return "cpu"; }
  static Device unknown() { return "?"; }
  static Device meet(const Device& a, const Device& b) { return a == b ? a : a + "|" + b; }
  static Device meet_host(const Device& data, const Device& operand) {
    return operand == "cpu" ? data : meet(data, operand);
  }
  static Device same_or_anywhere(const Device& a, const Device& b) { return a == b ? a : unknown(); }
};

struct Operand {
  std::string_view domain, name;
  int opset;
};

std::string device_of(Operand op, const std::vector<std::optional<std::string>>& operands,
                      std::optional<std::string> own = std::nullopt) {
  const DeviceSignature signature =
      device_signature(find_schema(op.domain, op.name, op.opset), find_entry(op.domain, op.name, op.opset));
  Names names;
  return infer_device(
      signature, names, std::move(own), operands.size(), [&](std::size_t i) { return operands[i]; },
      [] { return std::string("default"); });
}

TEST(DeviceRule, DataOperandsAreTogether) {
  EXPECT_EQ(device_of({"", "Add", 14}, {"cuda:0", "cuda:0"}), "cuda:0");
  EXPECT_EQ(device_of({"", "Add", 14}, {"cuda:0", "cpu"}), "cuda:0|cpu");
  EXPECT_EQ(device_of({"", "Add", 14}, {"cuda:0", "cuda:0"}, "cpu"), "cpu|cuda:0|cuda:0") << "not on the node's tag";
  EXPECT_EQ(device_of({"", "RandomNormal", 1}, {}), "default");
  EXPECT_EQ(device_of({"", "RandomNormal", 1}, {}, "cuda:1"), "cuda:1");
}

TEST(DeviceRule, IndicesAreData) {
  EXPECT_EQ(device_of({"", "Gather", 13}, {"cuda:0", "cpu"}), "cuda:0|cpu");
  const auto indices = [](std::string_view name, int opset) {
    return device_signature(find_schema("", name, opset), find_entry("", name, opset)).index;
  };
  for (const std::string_view name : {"Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND"})
    EXPECT_EQ(indices(name, 13), 2U) << name;
  EXPECT_EQ(indices("Scatter", 9), 2U);
  EXPECT_EQ(indices("Add", 13), 0U);
}

TEST(DeviceRule, HostOperandsAreOnTheCpuOrWithTheData) {
  for (const std::string where : {"cpu", "cuda:0"})
    EXPECT_EQ(device_of({"", "Reshape", 13}, {"cuda:0", where}), "cuda:0") << where;
  EXPECT_EQ(device_of({"", "Reshape", 13}, {"cuda:0", "cuda:1"}), "cuda:0|cuda:1");
  EXPECT_EQ(device_of({"", "Range", 11}, {"cpu", "cpu", "cpu"}), "default") << "no operand is data";
}

/// What two tables once said differently of these operators; each follows the kernel that reads it.
TEST(DeviceRule, HostOperandsOfKernels) {
  const auto hosts = [](std::string_view name, int opset) {
    return device_signature(find_schema("", name, opset), find_entry("", name, opset)).host;
  };
  EXPECT_EQ(hosts("Clip", 6), 0U);
  EXPECT_EQ(hosts("Clip", 13), 0b110U);
  EXPECT_EQ(hosts("Resize", 10), 0b10U);
  EXPECT_EQ(hosts("Resize", 19), 0b1110U);
  EXPECT_EQ(hosts("TopK", 1), 0U);
  EXPECT_EQ(hosts("TopK", 11), 0b10U);
  EXPECT_EQ(hosts("Tile", 1), 0b110U);
  EXPECT_EQ(hosts("Tile", 13), 0b10U);
  EXPECT_EQ(hosts("MelWeightMatrix", 17), 0b11111U);
  EXPECT_EQ(hosts("NonMaxSuppression", 11), 0b11100U);
}

TEST(DeviceRule, ResultsOfShapesAreOnTheHost) {
  EXPECT_EQ(device_of({"", "Shape", 15}, {"cuda:0"}), "cpu");
  EXPECT_EQ(device_of({"", "Size", 13}, {"cuda:0"}, "cuda:0"), "cpu");
}

TEST(DeviceRule, TransferMovesToItsArgument) {
  EXPECT_EQ(device_of({"tensorlint", "Transfer", 1}, {"cpu"}, "cuda:0"), "cuda:0");
  EXPECT_EQ(device_of({"tensorlint", "Transfer", 1}, {"cpu"}), "?");
}

TEST(DeviceRule, ElementsOfSequencesAreAnywhere) {
  EXPECT_EQ(device_of({"", "SequenceInsert", 11}, {"cuda:0", "cuda:1", "cpu"}), "?");
  EXPECT_EQ(device_of({"", "SequenceConstruct", 11}, {"cuda:0", "cuda:0"}), "cuda:0");
  EXPECT_EQ(device_of({"", "SplitToSequence", 11}, {"cuda:0"}), "cuda:0");
  EXPECT_EQ(device_of({"", "OptionalGetElement", 18}, {"cuda:1"}), "cuda:1");
}

TEST(DeviceRule, NothingIsKnownOfOperatorsWithoutASchema) {
  EXPECT_EQ(device_of({"com.acme", "Transfer", 1}, {"cuda:0", "cpu"}), "?");
  EXPECT_EQ(device_of({"com.acme", "Gather", 1}, {"cuda:0", std::nullopt, "cuda:0"}), "cuda:0");
}

}  // namespace
}  // namespace tensorlint::ops

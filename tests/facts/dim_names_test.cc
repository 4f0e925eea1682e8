#include "ir/facts/dim_names.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace tensorlint {
namespace {

/// The formula as the pool prints it; names that are symbols of their own come back as they are.
std::string read(std::string_view name) {
  DimPool pool;
  return pool.to_text(dim_of_name(pool, name));
}

bool is_symbol(std::string_view name) {
  DimPool pool;
  const Dim dim = dim_of_name(pool, name);
  return dim == pool.symbol(name);
}

TEST(DimNames, Formulas) {
  EXPECT_EQ(read("a + 1"), "a + 1");
  EXPECT_EQ(read("1 + a"), "a + 1");
  EXPECT_EQ(read("2*batch"), "2*batch");
  EXPECT_EQ(read("(a + 1)*b"), "a*b + b");
  EXPECT_EQ(read("a - 1"), "a - 1");
  EXPECT_EQ(read("-a + b"), "-a + b");
  EXPECT_EQ(read("a//2"), "floor(a/2)");
  EXPECT_EQ(read("((s0 - 1)//2) + 1"), "floor((s0 + 1)/2)");
  EXPECT_EQ(read("floor(h/2 - 1/2) + 1"), "floor((h + 1)/2)");
  EXPECT_EQ(read("floor(h/2)"), "floor(h/2)");
  EXPECT_EQ(read("ceiling(h/2)"), "floor((h + 1)/2)");
  EXPECT_EQ(read("Max(1, s0)"), "max(s0, 1)");
  EXPECT_EQ(read("Min(512, s0, s1)"), "min(s0, s1, 512)");
  EXPECT_EQ(read("Mod(s0, 8)"), "mod(s0, 8)");
  EXPECT_EQ(read("s0 % 8"), "mod(s0, 8)");
  EXPECT_EQ(read("FloorDiv(s0, 8)"), "floor(s0/8)");
  EXPECT_EQ(read("s0**2"), "s0*s0");
  EXPECT_EQ(read("past_sequence_length + sequence_length"), "past_sequence_length + sequence_length");
}

TEST(DimNames, TheSameSymbolsAsPlainNames) {
  DimPool pool;
  EXPECT_EQ(dim_of_name(pool, "a + 1"), pool.add(pool.symbol("a"), pool.constant(1)));
  EXPECT_EQ(dim_of_name(pool, "2*a//2"), pool.symbol("a"));
}

TEST(DimNames, NamesThatAreNoFormulas) {
  for (const char* name : {"N",
                           "batch-size",
                           "dim-0",
                           "resnet-50",
                           "batch size",
                           "a b",
                           "a + ",
                           "+ a",
                           "(a",
                           "a)",
                           "a/2",
                           "a + (b",
                           "None + 1",
                           "floor(a)(b)",
                           "f(a, b)",
                           "Max(a)",
                           "Mod(a, b, c)",
                           "a - a",
                           "-a",
                           "-2*a - 1",
                           "3 + 4",
                           "1.5*a",
                           "2a + b",
                           "a ** b",
                           "a**9",
                           "a//b",
                           "a//0",
                           "a*b*c*d*e",
                           "a + 99999999999999999999",
                           "9223372036854775807*a + 9223372036854775807*a",
                           "",
                           " ",
                           "a\t+ b",
                           "a,b",
                           "\"a\" + 1",
                           "a + 1;"})
    EXPECT_TRUE(is_symbol(name)) << name << " is " << read(name);
}

TEST(DimNames, HostileNamesAreBounded) {
  EXPECT_TRUE(is_symbol(std::string(100'000, '(')));
  EXPECT_TRUE(is_symbol(fmt::format("{:(>200}a{:)>50}", "", "")));
  EXPECT_TRUE(is_symbol(fmt::format("{:->255}a", "")));
  std::string powers = "a";
  for (int i = 0; i < 60; ++i) powers += "**2";
  EXPECT_TRUE(is_symbol(powers));
  std::string sum = "a0";
  for (int i = 1; i < 40; ++i) sum += "+a" + std::to_string(i);
  EXPECT_TRUE(is_symbol(sum));  // too many terms
}

TEST(DimNames, NamesAreQuotedWithinFormulas) {
  DimPool pool;
  const Dim odd = dim_of_name(pool, "batch size"), b = pool.symbol("b");
  EXPECT_EQ(pool.to_text(odd), "batch size");
  EXPECT_EQ(pool.to_text(pool.mul(odd, b)), "\"batch size\"*b");
  EXPECT_EQ(pool.to_text(pool.mul(dim_of_name(pool, "a + 1"), dim_of_name(pool, "b + 1"))), "b + b*a + a + 1");
  EXPECT_EQ(pool.to_text(pool.add(dim_of_name(pool, "batch-size"), b)), "b + \"batch-size\"");
}

}  // namespace
}  // namespace tensorlint

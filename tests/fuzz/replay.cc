// The fuzz targets without libFuzzer, for any compiler: files as they are, and with --mutations many small changes of
// each.
//
//   fuzz_replay TARGET|all [--mutations N] [--seconds S] FILE|FOLDER...
//
// The same files and numbers give the same inputs. When a target aborts or a sanitizer stops it, the input is left in
// `fuzz_crash` in the working folder. A run of one input that takes longer than the limit of design.md "Bad input" is a
// failure too.
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/extents.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/sanitized.h"

extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace tensorlint::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

struct Target {
  std::string_view name;
  void (*run)(std::string_view);
};
constexpr std::array kTargets{Target{"onnx_reader", onnx_reader},
                              Target{"text_reader", text_reader},
                              Target{"check", check},
                              Target{"fix", fix},
                              Target{"run", run},
                              Target{"values", values}};

// More than a second for 64 KB is a hang; a sanitizer costs a factor of 10 to 40.
constexpr std::chrono::seconds kLimit{kSanitized ? 30 : 1};
constexpr std::size_t kLargest = std::size_t{64} << 10;

std::string_view g_input;
std::string g_place;

void save_input() {
  std::ofstream("fuzz_crash", std::ios::binary).write(g_input.data(), static_cast<std::streamsize>(g_input.size()));
  std::fprintf(stderr, "the input is left in `fuzz_crash`: %s\n", g_place.c_str());
}

/// Values at which arithmetic on dims, axes, counts and offsets turns over.
constexpr std::array<std::uint64_t, 14> kEdges{0,
                                               1,
                                               2,
                                               127,
                                               128,
                                               0x7fffffff,
                                               0x80000000,
                                               0xffffffff,
                                               std::uint64_t{1} << 40,
                                               std::uint64_t{1} << 62,
                                               0x7fffffffffffffff,
                                               0x8000000000000000,
                                               0xfffffffffffffffe,
                                               0xffffffffffffffff};

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  return out += static_cast<char>(value);
}

std::string mutated(std::string bytes, const std::string& other, std::mt19937_64& random) {
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  if (below(3) == 0) {
    bytes = with_other_extents(bytes, random);
    if (below(2) == 0) return bytes;
  }
  for (std::size_t edits = 1 + below(4); edits != 0; --edits) {
    if (bytes.empty()) return bytes;
    const std::size_t at = below(bytes.size());
    switch (below(9)) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 2:
        bytes.erase(at, 1 + below(16));
        break;
      case 3:
        bytes.insert(at, bytes.substr(below(bytes.size()), 1 + below(64)));
        break;
      case 4:
        bytes.replace(at, 1, varint(kEdges[below(kEdges.size())]));
        break;
      case 5:
        if (!other.empty()) bytes.insert(at, other.substr(below(other.size()), 1 + below(128)));
        break;
      case 6:
        if (!other.empty())
          bytes.replace(at, std::min<std::size_t>(bytes.size() - at, 1 + below(32)),
                        other.substr(below(other.size()), 1 + below(32)));
        break;
      case 7:
        std::swap(bytes[at], bytes[below(bytes.size())]);
        break;
      default:
        bytes[at] = static_cast<char>(bytes[at] + (below(2) == 0 ? 1 : -1));
        break;
    }
  }
  if (below(50) == 0) bytes.resize(below(bytes.size() + 1));
  if (bytes.size() > kLargest) bytes.resize(kLargest);
  return bytes;
}

struct Options {
  std::vector<Target> targets;
  std::size_t mutations = 0;
  double seconds = 1e9;  ///< no new input after that
  std::vector<std::string> files;
};

void run_one(const Target& target, std::string_view bytes, std::string place, Clock::duration& slowest) {
  g_input = bytes;
  g_place = std::move(place);
  const Clock::time_point start = Clock::now();
  target.run(bytes);
  const Clock::duration took = Clock::now() - start;
  slowest = std::max(slowest, took);
  if (bytes.size() <= kLargest) require(took < kLimit, "64 KB take less than a second");
}

int run(const Options& options) {
  std::vector<std::string> contents;
  for (const std::string& path : options.files) {
    std::ifstream in(path, std::ios::binary);
    contents.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  for (const Target& target : options.targets) {
    const Clock::time_point start = Clock::now();
    std::size_t runs = 0;
    Clock::duration slowest{};
    for (std::size_t i = 0; i < contents.size(); ++i, ++runs) run_one(target, contents[i], options.files[i], slowest);
    std::mt19937_64 random(20240601);
    for (std::size_t m = 0; m < options.mutations; ++m) {
      for (std::size_t i = 0; i < contents.size(); ++i, ++runs) {
        if (std::chrono::duration<double>(Clock::now() - start).count() > options.seconds) break;
        const std::string bytes = mutated(contents[i], contents[random() % contents.size()], random);
        run_one(target, bytes, options.files[i] + ", mutation " + std::to_string(m), slowest);
      }
    }
    std::cout << target.name << ": " << runs << " inputs, the slowest took "
              << std::chrono::duration<double, std::milli>(slowest).count() << " ms\n";
  }
  return 0;
}

int usage() {
  std::cerr << "usage: fuzz_replay onnx_reader|text_reader|check|fix|run|values|all [--mutations N] [--seconds S] "
               "FILE|FOLDER...\n";
  return 2;
}

int main_of(int argc, char** argv) {
  Options options;
  if (argc < 3) return usage();
  for (const Target& target : kTargets)
    if (target.name == argv[1] || std::strcmp(argv[1], "all") == 0) options.targets.push_back(target);
  for (int i = 2; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--mutations" && i + 1 < argc) {
      options.mutations = std::strtoull(argv[++i], nullptr, 10);
    } else if (argument == "--seconds" && i + 1 < argc) {
      options.seconds = std::strtod(argv[++i], nullptr);
    } else if (std::filesystem::is_directory(argument)) {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(argument))
        if (entry.is_regular_file()) options.files.push_back(entry.path().string());
    } else {
      options.files.push_back(argument);
    }
  }
  std::sort(options.files.begin(), options.files.end());
  if (options.targets.empty() || options.files.empty()) return usage();
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(save_input);
  ::signal(SIGABRT, [](int) { save_input(); });
  return run(options);
}

}  // namespace
}  // namespace tensorlint::fuzz

int main(int argc, char** argv) { return tensorlint::fuzz::main_of(argc, argv); }

#pragma once

#include <charconv>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/result.h"
#include "runtime/executor/sides.h"

namespace tensorlint::runtime {

/// Reading the clock at each node takes as long as small operators do.
enum class Timings : std::uint8_t { kNone, kTotal, kByOperator };

/// What computes matrix products on a device; in tf32 those of float32 alone.
enum class Products : std::uint8_t { kKernels, kCublasLt, kCublasLtTf32 };

/// What `tensorlint run` asks of the program that executes: `--name=value` each.
struct RunArguments {
  std::string command = "run";  ///< or compare, for which it runs: messages name the command and its options
  std::string model;
  bool is_text = false;
  bool is_expensive = false;               ///< the check that came first was
  std::vector<std::string> inputs, dump;   ///< inputs: folders and NAME=FILE
  std::string expect, outputs;             ///< folders; empty: not given
  std::string record;                      ///< a folder for the outputs as compare::RecordedValues reads them
  std::string device;                      ///< empty: the interpreter alone
  std::optional<Sides> sides;              ///< with a device
  Products products = Products::kKernels;  ///< with a device
  std::string cublaslt;                    ///< its file; empty: the system finds it
  std::optional<std::uint64_t> seed;
  std::uint64_t memory_limit = std::uint64_t{4} << 30;  ///< bytes
  double time_limit = 0;                                ///< seconds; 0: none
  double rtol = 1e-3, atol = 1e-7;
  bool check_facts = false;
  bool gradient = false;  ///< with a device
  Timings timings = Timings::kNone;
  int threads = 0;           ///< 0: as many as the machine has, within reason
  std::uint64_t repeat = 1;  ///< runs, of which the last one is shown, and those after the second are timed

  std::string_view memory_option() const { return command == "compare" ? "--window" : "--memory-limit"; }
  std::string_view device_option() const { return command == "compare" ? "--against" : "--device"; }
};

/// Whether the text is a number, and nothing else.
template <typename Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_seconds(std::string_view text, double& seconds);
bool read_thread_count(std::string_view text, int& count);

/// What the value of an option has to be, in words.
struct OptionForm {
  std::string_view option, form;
};

// Of options that several commands have.
inline constexpr OptionForm kSeedForm{"seed", "a whole number that is not negative"};
inline constexpr OptionForm kTimeLimitForm{"time-limit", "seconds, fewer than 1e9"};
inline constexpr OptionForm kThreadsForm{"threads", "a number from 1 to 256"};

/// Gives `set` the name and the value of each `--name=value`. It returns false where there is no such option, or where
/// the value is not of the option's form, which the error then names.
std::optional<Error> parse_options(const std::vector<std::string>& arguments, std::string_view command,
                                   const std::function<bool(std::string_view name, std::string_view value)>& set,
                                   std::span<const OptionForm> forms);

Result<RunArguments> parse_arguments(const std::vector<std::string>& arguments);

}  // namespace tensorlint::runtime

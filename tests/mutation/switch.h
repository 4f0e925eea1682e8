// What instrumented sources call (mutants.py writes the calls): each mutant is a number, one of them is active in a
// run. TENSORLINT_MUTANT=N activates it, TENSORLINT_REACH=FILE appends the numbers of the mutants that a run reaches.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <utility>

namespace tensorlint_mutants {

/// The state of the run, one in the program. Created at the first call, which may be in the construction of a table.
class Run {
 public:
  static Run& get() {
    static Run run;
    return run;
  }
  bool is_active(unsigned id) {
    if (file_ != nullptr) note(id);
    return id == active_;
  }
  /// What looked like arithmetic adds no numbers: no mutant.
  void leave_out(unsigned id) {
    if (file_ != nullptr) left_out_.insert(id);
  }
  ~Run() {
    if (file_ == nullptr) return;
    std::string text;
    for (const unsigned id : reached_) text += std::to_string(id) + '\n';
    for (const unsigned id : left_out_) text += '-' + std::to_string(id) + '\n';
    // In one call: several processes of one test append to the file.
    const int out = ::open(file_, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (out < 0 || ::write(out, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::abort();
    ::close(out);
    file_ = nullptr;
  }

 private:
  /// A loop asks for the same few again and again: the set is as slow as everything else together.
  void note(unsigned id) {
    unsigned& recent = recent_[id % recent_.size()];
    if (recent != id) reached_.insert(id);
    recent = id;
  }

  Run() : file_(std::getenv("TENSORLINT_REACH")) {
    if (const char* text = std::getenv("TENSORLINT_MUTANT"))
      active_ = static_cast<unsigned>(std::strtoul(text, nullptr, 10));
  }

  unsigned active_ = 0;  // no mutant has this number
  const char* file_;
  std::array<unsigned, 1 << 16> recent_{};
  std::unordered_set<unsigned> reached_{}, left_out_{};
};

inline bool on(unsigned id) { return Run::get().is_active(id); }

// Comparisons: the active mutant moves the boundary, or negates.
template <typename A, typename B>
auto less(unsigned id, const A& a, const B& b) -> decltype(a < b) {
  return on(id) ? a <= b : on(id + 1) ? a >= b : a < b;
}
template <typename A, typename B>
auto less_equal(unsigned id, const A& a, const B& b) -> decltype(a <= b) {
  return on(id) ? a < b : on(id + 1) ? a > b : a <= b;
}
template <typename A, typename B>
auto greater(unsigned id, const A& a, const B& b) -> decltype(a > b) {
  return on(id) ? a >= b : on(id + 1) ? a <= b : a > b;
}
template <typename A, typename B>
auto greater_equal(unsigned id, const A& a, const B& b) -> decltype(a >= b) {
  return on(id) ? a > b : on(id + 1) ? a < b : a >= b;
}
template <typename A, typename B>
bool equal(unsigned id, const A& a, const B& b) {
  return on(id) != static_cast<bool>(a == b);
}
template <typename A, typename B>
bool not_equal(unsigned id, const A& a, const B& b) {
  return on(id) != static_cast<bool>(a != b);
}

// Arithmetic: of numbers alone. What a program adds otherwise (strings, iterators) has no mutant, and reaches none.
template <typename A, typename B>
constexpr bool kNumbers = std::is_arithmetic_v<A> && std::is_arithmetic_v<B>;

#define TENSORLINT_MUTANT_OF_ARITHMETIC(name, op, other)       \
  template <typename A, typename B>                            \
  auto name(unsigned id, A&& a, B&& b) {                       \
    using X = std::remove_cvref_t<A>;                          \
    using Y = std::remove_cvref_t<B>;                          \
    if constexpr (kNumbers<X, Y>) {                            \
      if (on(id)) return static_cast<decltype(a op b)>(other); \
    } else {                                                   \
      Run::get().leave_out(id);                                \
    }                                                          \
    return std::forward<A>(a) op std::forward<B>(b);           \
  }
TENSORLINT_MUTANT_OF_ARITHMETIC(add, +, a - b)
TENSORLINT_MUTANT_OF_ARITHMETIC(subtract, -, a + b)
TENSORLINT_MUTANT_OF_ARITHMETIC(multiply, *, a + b)
TENSORLINT_MUTANT_OF_ARITHMETIC(divide, /, a* b)
TENSORLINT_MUTANT_OF_ARITHMETIC(remainder, %, b == 0 ? a : a / b)
#undef TENSORLINT_MUTANT_OF_ARITHMETIC

template <typename A, typename B>
decltype(auto) add_assign(unsigned id, A& a, B&& b) {
  if constexpr (kNumbers<A, std::remove_cvref_t<B>>) {
    if (on(id)) return a -= b;
  } else {
    Run::get().leave_out(id);
  }
  return a += std::forward<B>(b);
}
template <typename A, typename B>
decltype(auto) subtract_assign(unsigned id, A& a, B&& b) {
  if constexpr (kNumbers<A, std::remove_cvref_t<B>>) {
    if (on(id)) return a += b;
  } else {
    Run::get().leave_out(id);
  }
  return a -= std::forward<B>(b);
}

/// An integer constant, one more or one less.
template <typename T>
T number(unsigned id, T value) {
  return static_cast<T>(on(id) ? value + 1 : on(id + 1) ? value - 1 : value);
}

/// std::min for std::max, all_of for any_of, and back.
struct Swap {
  unsigned id;
  template <typename T, typename... Rest>
  const T& min(const T& a, const T& b, const Rest&... by) const {
    return on(id) ? std::max(a, b, by...) : std::min(a, b, by...);
  }
  template <typename T, typename... Rest>
  const T& max(const T& a, const T& b, const Rest&... by) const {
    return on(id) ? std::min(a, b, by...) : std::max(a, b, by...);
  }
  template <typename T>
  T min(std::initializer_list<T> of) const {
    return on(id) ? std::max(of) : std::min(of);
  }
  template <typename T>
  T max(std::initializer_list<T> of) const {
    return on(id) ? std::min(of) : std::max(of);
  }
  bool all_of(const auto& first, const auto& second, auto... rest) const {
    if constexpr (sizeof...(rest) > 0) {
      return on(id) ? std::any_of(first, second, rest...) : std::all_of(first, second, rest...);
    } else {
      return on(id) ? std::ranges::any_of(first, second) : std::ranges::all_of(first, second);
    }
  }
  bool any_of(const auto& first, const auto& second, auto... rest) const {
    if constexpr (sizeof...(rest) > 0) {
      return on(id) ? std::all_of(first, second, rest...) : std::any_of(first, second, rest...);
    } else {
      return on(id) ? std::ranges::all_of(first, second) : std::ranges::any_of(first, second);
    }
  }
};

}  // namespace tensorlint_mutants

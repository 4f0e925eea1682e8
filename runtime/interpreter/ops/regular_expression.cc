// Source: RE2's syntax page; K. Thompson, Regular expression search algorithm, 1968.
#include "runtime/interpreter/ops/regular_expression.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "runtime/values/memory.h"

namespace tensorlint::runtime {
namespace {

using Ranges = RegularExpression::Ranges;
using State = RegularExpression::State;
using Assertion = RegularExpression::Assertion;

constexpr std::uint32_t kLastCodePoint = 0x10ffff;
constexpr std::int64_t kMostRepeats = 1000;  // RE2's limit
constexpr std::size_t kMostStates = 200'000;
constexpr int kMostGroups = 200;  // in each other
constexpr std::uint32_t kLetterCase = 'a' - 'A';

/// A pattern as a tree.
struct Tree {
  enum class Kind : std::uint8_t { kSequence, kAlternatives, kRepeat, kTake, kAssert };
  Kind kind = Kind::kSequence;
  std::vector<Tree> parts;
  std::shared_ptr<const Ranges> ranges;
  Assertion assertion = Assertion::kTextBegin;
  std::int64_t least = 0, most = 0;  ///< kRepeat; -1: no limit
};

Ranges complement(Ranges ranges) {
  std::ranges::sort(ranges);
  Ranges result;
  std::uint32_t next = 0;
  for (const auto& [first, last] : ranges) {
    if (first > next) result.emplace_back(next, first - 1);
    next = std::max(next, last + 1);
  }
  if (next <= kLastCodePoint) result.emplace_back(next, kLastCodePoint);
  return result;
}

void append(Ranges& to, const Ranges& from) { to.insert(to.end(), from.begin(), from.end()); }

/// Of \d, \w, \s and their complements, and of [:name:]; RE2's are ASCII.
std::optional<Ranges> perl_class(std::uint32_t letter) {
  const Ranges digits{{'0', '9'}}, word{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
      space{{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
  switch (letter) {
    case 'd':
      return digits;
    case 'D':
      return complement(digits);
    case 'w':
      return word;
    case 'W':
      return complement(word);
    case 's':
      return space;
    case 'S':
      return complement(space);
    default:
      return std::nullopt;
  }
}

std::optional<Ranges> named_class(std::string_view name) {
  static const std::pair<std::string_view, Ranges> kClasses[] = {
      {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
      {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
      {"ascii", {{0, 127}}},
      {"blank", {{'\t', '\t'}, {' ', ' '}}},
      {"cntrl", {{0, 31}, {127, 127}}},
      {"digit", {{'0', '9'}}},
      {"graph", {{'!', '~'}}},
      {"lower", {{'a', 'z'}}},
      {"print", {{' ', '~'}}},
      {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
      {"space", {{'\t', '\r'}, {' ', ' '}}},
      {"upper", {{'A', 'Z'}}},
      {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
      {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
  };
  const auto found = std::ranges::find(kClasses, name, [](const auto& each) { return each.first; });
  return found == std::end(kClasses) ? std::nullopt : std::optional(found->second);
}

class Parser {
 public:
  explicit Parser(std::string_view pattern)
      : text_(code_points(pattern, std::pmr::get_default_resource())), pattern_(pattern) {}

  Tree parse() {
    Tree tree = alternatives();
    if (!at_end()) fail("unexpected )");
    return tree;
  }

 private:
  struct Flags {
    bool ignore_case = false, lines = false, dot_takes_all = false;
  };

  [[noreturn]] void fail(std::string_view why) const {
    throw RunFault{fmt::format("the regular expression `{}` is malformed or not supported: {}", pattern_, why)};
  }
  bool at_end() const { return at_ == text_.size(); }
  std::uint32_t peek() const { return at_end() ? 0 : text_[at_]; }
  bool accept(std::uint32_t c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool accept(std::string_view word) {
    if (text_.size() - at_ < word.size()) return false;
    for (std::size_t i = 0; i < word.size(); ++i)
      if (text_[at_ + i] != static_cast<std::uint8_t>(word[i])) return false;
    at_ += word.size();
    return true;
  }
  std::uint32_t take() {
    if (at_end()) fail("it ends too early");
    return text_[at_++];
  }

  Tree alternatives() {
    Tree tree;
    tree.kind = Tree::Kind::kAlternatives;
    do {
      tree.parts.push_back(sequence());
    } while (accept('|'));
    return tree;
  }

  Tree sequence() {
    Tree tree;
    while (!at_end() && peek() != '|' && peek() != ')') {
      if (accept("\\Q")) {
        while (!at_end() && !accept("\\E")) tree.parts.push_back(literal(take()));
        if (!tree.parts.empty()) tree.parts.back() = repeated(std::move(tree.parts.back()));
        continue;
      }
      if (auto part = atom()) tree.parts.push_back(repeated(std::move(*part)));
    }
    return tree;
  }

  Tree repeated(Tree part) {
    for (int nested = 0;; ++nested) {
      if (nested > kMostGroups) fail("too many repetitions of repetitions");
      std::int64_t least = 0, most = -1;
      const std::size_t before = at_;
      if (accept('+')) {
        least = 1;
      } else if (accept('?')) {
        most = 1;
      } else if (!accept('*') && !counts(least, most)) {
        at_ = before;
        return part;
      }
      if (least > kMostRepeats || most > kMostRepeats || (most >= 0 && most < least)) fail("bad number of repetitions");
      accept('?');  // lazy: the same texts match as a whole
      if (peek() == '+' || peek() == '*') fail("bad repetition");
      Tree tree;
      tree.kind = Tree::Kind::kRepeat;
      tree.least = least;
      tree.most = most;
      tree.parts.push_back(std::move(part));
      part = std::move(tree);
    }
  }

  /// {m}, {m,} or {m,n}; anything else after a brace makes it a character.
  bool counts(std::int64_t& least, std::int64_t& most) {
    if (!accept('{')) return false;
    const auto first = number();
    if (!first) return false;
    least = most = *first;
    if (accept(',')) most = peek() == '}' ? -1 : number().value_or(-2);
    return most != -2 && accept('}');
  }

  std::optional<std::int64_t> number() {
    if (peek() < '0' || peek() > '9') return std::nullopt;
    std::int64_t value = 0;
    while (peek() >= '0' && peek() <= '9') value = std::min<std::int64_t>(value * 10 + (take() - '0'), 1'000'000);
    return value;
  }

  /// Nothing where the text only sets flags.
  std::optional<Tree> atom() {
    const std::uint32_t c = take();
    switch (c) {
      case '(':
        return group();
      case '[':
        return taking(bracket());
      case '.':
        return taking(flags_.dot_takes_all ? Ranges{{0, kLastCodePoint}} : complement({{'\n', '\n'}}));
      case '^':
        return asserting(flags_.lines ? Assertion::kLineBegin : Assertion::kTextBegin);
      case '$':
        return asserting(flags_.lines ? Assertion::kLineEnd : Assertion::kTextEnd);
      case '*':
      case '+':
      case '?':
        fail("nothing to repeat");
      case '\\':
        return escape();
      default:
        return literal(c);
    }
  }

  std::optional<Tree> group() {
    if (++depth_ > kMostGroups) fail("groups are nested too deep");
    const Flags outer = flags_;
    if (accept("?P<") || accept("?<")) {
      while (take() != '>') {
      }
    } else if (accept('?')) {
      set_flags();
      if (accept(')')) {  // they hold to the end of the group around
        --depth_;
        return std::nullopt;
      }
      if (!accept(':')) fail("unknown group");
    }
    Tree tree = alternatives();
    if (!accept(')')) fail("missing )");
    flags_ = outer;
    --depth_;
    return tree;
  }

  void set_flags() {
    bool on = true;
    for (; peek() != ':' && peek() != ')'; ++at_) {
      switch (take(), text_[--at_]) {
        case '-':
          on = false;
          break;
        case 'i':
          flags_.ignore_case = on;
          break;
        case 'm':
          flags_.lines = on;
          break;
        case 's':
          flags_.dot_takes_all = on;
          break;
        case 'U':  // swaps greedy and lazy
          break;
        default:
          fail("unknown flag");
      }
    }
  }

  Tree escape() {
    const std::uint32_t c = peek();
    if (auto ranges = perl_class(c)) {
      ++at_;
      return taking(std::move(*ranges));
    }
    switch (c) {
      case 'b':
        return ++at_, asserting(Assertion::kWordEdge);
      case 'B':
        return ++at_, asserting(Assertion::kInsideWord);
      case 'A':
        return ++at_, asserting(Assertion::kTextBegin);
      case 'z':
        return ++at_, asserting(Assertion::kTextEnd);
      default:
        return literal(escaped());
    }
  }

  /// The character that follows a backslash.
  std::uint32_t escaped() {
    const std::uint32_t c = take();
    switch (c) {
      case 'a':
        return '\a';
      case 'f':
        return '\f';
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'v':
        return '\v';
      case 'x':
        return hexadecimal();
      default:
        break;
    }
    if (c >= '0' && c <= '7') return octal(c);
    const bool is_word = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (is_word) fail("unknown escape");
    return c;
  }

  std::uint32_t octal(std::uint32_t first) {
    if (first != '0' && (peek() < '0' || peek() > '7')) fail("references to groups are not regular");
    std::uint32_t value = first - '0';
    for (int i = 0; i < 2 && peek() >= '0' && peek() <= '7'; ++i) value = value * 8 + (take() - '0');
    return value;
  }

  std::uint32_t hexadecimal() {
    const bool braces = accept('{');
    std::uint32_t value = 0;
    for (int i = 0; braces ? peek() != '}' : i < 2; ++i) {
      const std::uint32_t c = take(), lower = c | kLetterCase;
      if (c >= '0' && c <= '9') {
        value = value * 16 + (c - '0');
      } else if (lower >= 'a' && lower <= 'f') {
        value = value * 16 + (lower - 'a' + 10);
      } else {
        fail("bad hexadecimal number");
      }
      if (value > kLastCodePoint) fail("not a character");
    }
    if (braces) take();
    return value;
  }

  Ranges bracket() {
    const bool negated = accept('^');
    Ranges ranges;
    for (bool first = true; first || peek() != ']'; first = false) {
      if (accept("[:")) {
        append(ranges, posix_class());
        continue;
      }
      std::uint32_t low = take();
      if (low == '\\') {
        if (auto of = perl_class(peek())) {
          ++at_;
          append(ranges, *of);
          continue;
        }
        low = escaped();
      }
      std::uint32_t high = low;
      if (peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        high = take();
        if (high == '\\') high = escaped();
      }
      if (high < low) fail("a range of characters is empty");
      ranges.emplace_back(low, high);
    }
    ++at_;
    ranges = folded(std::move(ranges));
    return negated ? complement(std::move(ranges)) : ranges;
  }

  Ranges posix_class() {
    const bool negated = accept('^');
    std::string name;
    while (peek() != ':') name += static_cast<char>(take());
    const auto ranges = named_class(name);
    if (!ranges || !accept(":]")) fail("unknown class of characters");
    return negated ? complement(*ranges) : *ranges;
  }

  /// With the other case of letters, where case is ignored.
  Ranges folded(Ranges ranges) const {
    if (!flags_.ignore_case) return ranges;
    const std::size_t count = ranges.size();
    for (std::size_t i = 0; i < count; ++i) {
      const auto [first, last] = ranges[i];
      if (first == last && first > 127) fail("case is only ignored of ASCII letters");
      for (const std::uint32_t base : {std::uint32_t{'A'}, std::uint32_t{'a'}}) {
        const std::uint32_t low = std::max(first, base), high = std::min(last, base + 25);
        if (low <= high) ranges.emplace_back(low ^ kLetterCase, high ^ kLetterCase);
      }
    }
    return ranges;
  }

  Tree literal(std::uint32_t c) const { return taking(folded({{c, c}})); }
  static Tree taking(Ranges ranges) {
    Tree tree;
    tree.kind = Tree::Kind::kTake;
    tree.ranges = std::make_shared<const Ranges>(std::move(ranges));
    return tree;
  }
  static Tree asserting(Assertion assertion) {
    Tree tree;
    tree.kind = Tree::Kind::kAssert;
    tree.assertion = assertion;
    return tree;
  }

  std::pmr::vector<std::uint32_t> text_;
  std::string_view pattern_;
  std::size_t at_ = 0;
  Flags flags_;
  int depth_ = 0;
};

/// Emits states backwards: each part gets the state that follows it and gives the one that it begins with.
class Compiler {
 public:
  explicit Compiler(std::vector<State>& states) : states_(states) {}

  std::size_t compile(const Tree& tree, std::size_t next) {
    // Repetitions of nothing make no states.
    if (++steps_ > 10 * kMostStates) throw RunFault{"a regular expression is too large"};
    switch (tree.kind) {
      case Tree::Kind::kSequence:
        for (std::size_t i = tree.parts.size(); i-- > 0;) next = compile(tree.parts[i], next);
        return next;
      case Tree::Kind::kAlternatives: {
        std::size_t begin = compile(tree.parts.back(), next);
        for (std::size_t i = tree.parts.size() - 1; i-- > 0;) begin = split(compile(tree.parts[i], next), begin);
        return begin;
      }
      case Tree::Kind::kRepeat:
        return repeat(tree, next);
      case Tree::Kind::kTake:
        return add({State::Kind::kTake, {}, tree.ranges, next, 0});
      case Tree::Kind::kAssert:
        return add({State::Kind::kAssert, tree.assertion, {}, next, 0});
    }
    return next;
  }

  std::size_t add(State state) {
    if (states_.size() >= kMostStates) throw RunFault{"a regular expression is too large"};
    states_.push_back(std::move(state));
    return states_.size() - 1;
  }
  std::size_t split(std::size_t a, std::size_t b) { return add({State::Kind::kSplit, {}, {}, a, b}); }

 private:
  std::size_t repeat(const Tree& tree, std::size_t next) {
    const Tree& part = tree.parts.front();
    if (tree.most < 0) {
      const std::size_t loop = split(0, next), body = compile(part, loop);
      states_[loop].next = body;
      next = loop;
    }
    // Optional copies nest, x{0,2} being (x(x)?)?: what leaves one out leaves out those after it.
    const std::size_t end = next;
    for (std::int64_t i = tree.least; i < tree.most; ++i) next = split(compile(part, next), end);
    for (std::int64_t i = 0; i < tree.least; ++i) next = compile(part, next);
    return next;
  }

  std::vector<State>& states_;
  std::size_t steps_ = 0;
};

bool is_word(std::uint32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

bool holds(Assertion assertion, std::span<const std::uint32_t> text, std::size_t at) {
  const bool begin = at == 0, end = at == text.size();
  const bool edge = (!begin && is_word(text[at - 1])) != (!end && is_word(text[at]));
  switch (assertion) {
    case Assertion::kTextBegin:
      return begin;
    case Assertion::kTextEnd:
      return end;
    case Assertion::kLineBegin:
      return begin || text[at - 1] == '\n';
    case Assertion::kLineEnd:
      return end || text[at] == '\n';
    case Assertion::kWordEdge:
      return edge;
    case Assertion::kInsideWord:
      return !edge;
  }
  return false;
}

/// States that are reached at a position; each once.
class Reached {
 public:
  explicit Reached(const std::vector<State>& states) : states_(states), seen_(states.size(), 0) {}

  void next_position() {
    ++round_;
    takes_.clear();
    accepts_ = false;
  }
  void add(std::size_t start, std::span<const std::uint32_t> text, std::size_t at) {
    pending_.assign(1, start);
    while (!pending_.empty()) {
      const std::size_t id = pending_.back();
      pending_.pop_back();
      if (std::exchange(seen_[id], round_) == round_) continue;
      const State& state = states_[id];
      if (state.kind == State::Kind::kTake) takes_.push_back(id);
      if (state.kind == State::Kind::kAccept) accepts_ = true;
      if (state.kind == State::Kind::kSplit) pending_.push_back(state.other);
      if (state.kind == State::Kind::kSplit || (state.kind == State::Kind::kAssert && holds(state.assertion, text, at)))
        pending_.push_back(state.next);
    }
  }
  const std::vector<std::size_t>& takes() const { return takes_; }
  bool accepts() const { return accepts_; }

 private:
  const std::vector<State>& states_;
  std::vector<std::size_t> seen_, takes_, pending_;
  std::size_t round_ = 0;
  bool accepts_ = false;
};

}  // namespace

RegularExpression::RegularExpression(std::string_view pattern) {
  const Tree tree = Parser(pattern).parse();
  Compiler compiler(states_);
  begin_ = compiler.compile(tree, compiler.add({}));
}

bool RegularExpression::matches(std::string_view utf8, std::pmr::memory_resource* memory) const {
  const std::pmr::vector<std::uint32_t> text = code_points(utf8, memory);
  Reached sets[2] = {Reached(states_), Reached(states_)};
  sets[0].next_position();
  sets[0].add(begin_, text, 0);
  for (std::size_t at = 0; at < text.size(); ++at) {
    const Reached& now = sets[at % 2];
    Reached& next = sets[(at + 1) % 2];
    next.next_position();
    for (const std::size_t id : now.takes()) {
      const State& state = states_[id];
      const bool taken = std::ranges::any_of(
          *state.ranges, [&](const auto& range) { return text[at] >= range.first && text[at] <= range.second; });
      if (taken) next.add(state.next, text, at + 1);
    }
  }
  return sets[text.size() % 2].accepts();
}

std::pmr::vector<std::uint32_t> code_points(std::string_view text, std::pmr::memory_resource* memory) {
  std::pmr::vector<std::uint32_t> points(memory);
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<std::uint8_t>(text[i]);
    const std::size_t length = lead < 0x80                   ? 1
                               : lead >= 0xc2 && lead < 0xe0 ? 2
                               : (lead & 0xf0U) == 0xe0      ? 3
                               : lead >= 0xf0 && lead < 0xf5 ? 4
                                                             : 0;
    std::uint32_t point = length < 2 ? lead : lead & (0x7fU >> length);
    bool valid = length != 0 && i + length <= text.size();
    for (std::size_t k = 1; valid && k < length; ++k) {
      const auto byte = static_cast<std::uint8_t>(text[i + k]);
      valid = (byte & 0xc0U) == 0x80;
      point = point << 6 | (byte & 0x3fU);
    }
    points.push_back(valid ? point : 0xfffdU);
    i += valid ? length : 1;
  }
  return points;
}

void append_utf8(std::pmr::string& text, std::uint32_t point) {
  const auto tail = [&](unsigned shift) { text += static_cast<char>(0x80U | ((point >> shift) & 0x3fU)); };
  if (point < 0x80) {
    text += static_cast<char>(point);
  } else if (point < 0x800) {
    text += static_cast<char>(0xc0U | (point >> 6));
    tail(0);
  } else if (point < 0x10000) {
    text += static_cast<char>(0xe0U | (point >> 12));
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xf0U | (point >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace tensorlint::runtime

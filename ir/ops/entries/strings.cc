// Strings. Source: ONNX StringNormalizer (opset 10), TfIdfVectorizer (9), StringConcat, StringSplit, RegexFullMatch
// (20).
#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "ir/ops/attributes.h"
#include "ir/ops/elementwise.h"
#include "ir/ops/shape_functions.h"

namespace tensorlint::ops {
namespace {

const Constraint kPattern{"regex_pattern", ConstraintKind::kAttribute, "the pattern is a regular expression"};
const Constraint kNormalizerShape{"string_normalizer_shape", ConstraintKind::kShapes,
                                  "the operand is of shape [C] or [1, C]"};
const Constraint kNormalizerCase{"string_normalizer_case", ConstraintKind::kAttribute,
                                 "`case_change_action` is LOWER, UPPER or NONE"};
const Constraint kVectorizerShape{"tf_idf_shape", ConstraintKind::kShapes, "the operand is of shape [C] or [N, C]"};
const Constraint kVectorizerMode{"tf_idf_mode", ConstraintKind::kAttribute, "`mode` is TF, IDF or TFIDF"};
const Constraint kVectorizerIndexes{"tf_idf_indexes", ConstraintKind::kAttribute,
                                    "no element of ngram_indexes is negative"};

void string_normalizer(Inference& in) {
  DimPool& pool = in.dims();
  choice_attribute(in, "case_change_action", "NONE", {"LOWER", "UPPER", "NONE"}, kNormalizerCase);
  const auto words = in.shape(0);
  if (!words) return;
  const bool legal = words->size() == 1 || (words->size() == 2 && !pool.never_equal(words->front(), pool.constant(1)));
  if (!legal) {
    in.fail(kNormalizerShape, {0}, {"{} has shape {}, StringNormalizer takes [C] or [1, C]", OperandRef(0), *words});
    return;
  }
  Dims result = copy_dims(*words);
  const Attribute* stopwords = in.attribute("stopwords");
  // Without words to drop all of them stay; where none stays, one empty string does.
  if ((stopwords != nullptr && !stopwords->strings.empty()) || pool.bounds(words->back()).lo < 1)
    result.back() = Dim(Unknown::kDataDependent);
  if (result.size() == 2) result.front() = pool.constant(1);
  in.set_shape(0, result);
}

void string_concat(Inference& in) {
  const auto a = in.shape(0), b = in.shape(1);
  if (a && b) in.set_shape(0, broadcast(in, *a, *b, 0, 1));
}

void string_split(Inference& in) {
  const auto text = in.shape(0);
  in.set_range(1, {0, 9223372036854775808.0, false});
  if (!text) return;
  Dims parts = copy_dims(*text);
  parts.push_back(Dim(Unknown::kDataDependent));
  in.set_shape(0, parts);
  in.set_shape(1, *text);
}

void tf_idf(Inference& in) {
  DimPool& pool = in.dims();
  choice_attribute(in, "mode", "", {"TF", "IDF", "TFIDF"}, kVectorizerMode);
  const auto indexes = in.ints_attribute("ngram_indexes");
  Dim width;
  if (indexes && !indexes->empty()) {
    const auto [lowest, highest] = std::minmax_element(indexes->begin(), indexes->end());
    if (*lowest < 0) in.fail(kVectorizerIndexes, {}, {"ngram_indexes has the element {}", *lowest});
    if (*highest >= 0) width = pool.add(pool.constant(*highest), pool.constant(1));
  }
  const auto data = in.shape(0);
  if (!data) return;
  if (data->size() != 1 && data->size() != 2) {
    in.fail(kVectorizerShape, {0},
            {"{} has rank {}, TfIdfVectorizer takes [C] or [N, C]", OperandRef(0), data->size()});
    return;
  }
  if (data->size() == 1) {
    in.set_shape(0, Dims{width});
  } else {
    in.set_shape(0, Dims{data->front(), width});
  }
}

/// What no flavour of regular expressions compiles; onnxruntime has RE2, the reference implementation Python's.
std::optional<std::string_view> pattern_fault(std::string_view pattern) {
  int depth = 0;
  bool can_repeat = false;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const char c = pattern[at];
    if (c == '*' || c == '+' || c == '?') {
      if (!can_repeat) return "repeats nothing";
      continue;
    }
    can_repeat = c != '(' && c != '|';
    if (c == '\\') {
      if (++at == pattern.size()) return "ends in a backslash";
    } else if (c == '[') {
      at += at + 1 < pattern.size() && pattern[at + 1] == '^' ? 2 : 1;
      if (at < pattern.size() && pattern[at] == ']') ++at;  // the first is one of the characters
      while (at < pattern.size() && pattern[at] != ']') at += pattern[at] == '\\' ? 2 : 1;
      if (at >= pattern.size()) return "has a [ without its ]";
    } else if (c == '(') {
      ++depth;
      if (at + 1 < pattern.size() && pattern[at + 1] == '?') ++at;  // (?:...), (?i)
    } else if (c == ')' && --depth < 0) {
      return "has a ) without its (";
    }
  }
  return depth > 0 ? std::optional<std::string_view>("has a ( without its )") : std::nullopt;
}

void regex_full_match(Inference& in) {
  unary_shape(in);
  const std::string_view pattern = in.string_attribute("pattern", "");
  if (const auto fault = pattern_fault(pattern))
    in.fail(kPattern, {}, {"{} of RegexFullMatch {}: `{}`", AttributeName("pattern"), *fault, pattern});
}

const RegisterOps kRegisterStrings{
    OpEntry("StringNormalizer").infer(string_normalizer).constraint(kNormalizerShape).constraint(kNormalizerCase),
    OpEntry("StringConcat").trait(OpTrait::kElementwise).infer(string_concat).constraint(kBroadcastable),
    OpEntry("StringSplit").trait(OpTrait::kCountsElements).infer(string_split),
    OpEntry("RegexFullMatch").infer(regex_full_match).constraint(kPattern),
    OpEntry("TfIdfVectorizer")
        .infer(tf_idf)
        .constraint(kVectorizerShape)
        .constraint(kVectorizerMode)
        .constraint(kVectorizerIndexes),
};

}  // namespace
}  // namespace tensorlint::ops

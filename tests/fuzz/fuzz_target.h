#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace tensorlint::fuzz {

// Each takes any bytes, and aborts when a promise is broken; crashes and leaks are for the sanitizers to find.

/// Binary reader: an error names an offset within the file; a model's spans and ids hold together.
void onnx_reader(std::string_view bytes);
/// Text reader and printer: an error names a line; what is printed reads back as the same text.
void text_reader(std::string_view bytes);
/// `check` as a whole, of binary models and (where the bytes begin like a text) of text: every report, all formats
/// clean.
void check(std::string_view bytes);
/// `fix --unsafe`: what is written can be read and analysed.
void fix(std::string_view bytes);
/// `run` within small limits, of models as `check` takes them: it ends with values or an error, every value lies inside
/// its fact, a second run gives the same.
void run(std::string_view bytes);
/// Recorded values, `.npz` and (where the bytes begin like one) `.npy`: an error or tensors, within the memory limit.
void values(std::string_view bytes);

/// Every ONNX file that a writer makes begins with a field's tag, which is a control character.
inline bool starts_as_binary(std::string_view bytes) {
  return !bytes.empty() && static_cast<unsigned char>(bytes[0]) < 0x20 && bytes[0] != '\n';
}

inline void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

}  // namespace tensorlint::fuzz

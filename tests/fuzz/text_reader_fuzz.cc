#include "ir/text/printer.h"
#include "ir/text/reader.h"
#include "tests/fuzz/fuzz_target.h"

namespace tensorlint::fuzz {

void text_reader(std::string_view bytes) {
  const Result<Model> model = read_onnx_text(bytes, "m.onnxtxt");
  if (!model) {
    require(!model.error().message.empty(), "an error says something");
    require(model.error().position.offset <= bytes.size(), "an error lies within the text");
    return;
  }
  const std::string once = to_text(*model);
  const Result<Model> again = read_onnx_text(once, "m.onnxtxt");
  if (!again) std::fprintf(stderr, "%s\n--\n%s\n", again.error().message.c_str(), once.c_str());
  require(again.ok(), "what is printed can be read");
  require(to_text(*again) == once, "what is read back prints the same");
}

}  // namespace tensorlint::fuzz

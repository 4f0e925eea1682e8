#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/model.h"
#include "ir/result.h"

namespace tensorlint::cli {

/// A file name that says: ONNX, binary or text.
bool is_model_name(std::string_view path);

/// A file to check, or why there is none behind what was given.
struct InputFile {
  std::string path;
  std::string error;  ///< empty: a file
};

/// Files, folders (recursively, links to folders are not followed) and globs to files, in the given order, a folder's
/// sorted. Folders and globs give models; a file that is named gets checked whatever it is called. Of what is named
/// twice, or is in a folder that is named too, the first counts. A folder inside that cannot be read is an entry with
/// an error.
std::vector<InputFile> expand_inputs(std::span<const std::string> arguments);

/// Reads a model, binary or text by its file name.
Result<Model> load_model(const std::string& path);

}  // namespace tensorlint::cli

#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/graph/model.h"
#include "ir/result.h"

namespace tensorlint::cli {

/// A file to check, or why there is none behind what was given.
struct InputFile {
  std::string path;
  std::string error;  ///< empty: a file
};

/// Files, folders (recursively, links to folders are not followed) and globs to files, in the given order, a folder's sorted.
/// Folders and globs give models; a file that is named gets checked whatever it is called.
std::vector<InputFile> expand_inputs(std::span<const std::string> arguments);

/// Reads a model, binary or text by its file name.
Result<Model> load_model(const std::string& path);

}  // namespace tensorlint::cli

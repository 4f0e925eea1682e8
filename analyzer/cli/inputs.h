#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/cli/declarations.h"
#include "analyzer/pipeline/pipeline.h"
#include "base/file_bytes.h"
#include "base/result.h"
#include "ir/graph/model.h"

namespace tensorlint::cli {

/// What messages and reports call standard input, which `-` names on the command line.
inline constexpr std::string_view kStandardInput = "<stdin>";

/// The path of an argument: kStandardInput for `-`. A file that really has that name becomes `./<stdin>`.
std::string input_path(const std::string& argument);

/// A model in text, by its file's name; what comes from standard input, by its first bytes.
bool is_text_model(std::string_view path);
bool is_text_model(std::string_view path, std::string_view bytes);

/// A file name that says: ONNX, binary or text.
bool is_model_name(std::string_view path);

/// A file to check, or why an argument names none.
struct InputFile {
  std::string path;
  std::string error;  ///< empty: a file
};

/// Files, folders (recursively, links to folders are not followed) and globs to files, in the given order, a folder's
/// sorted. Folders and globs give models; a file that is named gets checked whatever it is called. Of what is named
/// twice, or is in a folder that is named too, the first counts. A folder inside that cannot be read is an entry with
/// an error.
std::vector<InputFile> expand_inputs(std::span<const std::string> arguments);

/// Reads a model: a file, binary or text by its name, or kStandardInput, by its first bytes.
Result<Model> load_model(const std::string& path);

/// The same for a command about one model. Errors name the path; besides those of load_model: `declared` names values
/// that the main graph lacks.
Result<pipeline::Pipeline> load(const std::string& path, const pipeline::Options& options,
                                const Declarations& declared);

/// The bytes of a model, for those who edit them.
struct ModelBytes {
  std::string_view bytes;
  bool is_text = false;
  std::shared_ptr<const void> owner;      ///< of the bytes
  std::shared_ptr<const FileBytes> file;  ///< null for standard input
  /// Views into the bytes.
  Result<Model> read(const std::string& path) const;
};

/// Standard input is read to its end, at most 2 GiB of it: no protobuf message is larger.
Result<ModelBytes> open_model(const std::string& path);

}  // namespace tensorlint::cli

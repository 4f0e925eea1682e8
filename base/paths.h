#pragma once

#include <string>
#include <string_view>

namespace tensorlint {

/// The path from the root of the file system, without `.`, `..` and empty components: by its text, links are not
/// followed. Kept as text: std::filesystem keeps each component of a path as a path of its own.
std::string whole_path(std::string_view path);

/// `path` as seen from `folder`, with `/` between folders and without following links: "models/a.onnx", "../b.onnx".
std::string relative_path(std::string_view path, std::string_view folder);

/// Takes the first component from `path`, with the slashes around it; empty where there is none.
std::string_view take_component(std::string_view& path);

/// Where a folder really is, links followed; empty where there is none. Takes time in proportion to its path, whereas
/// realpath asks for each folder above it by its whole path.
std::string real_folder(const std::string& folder);

}  // namespace tensorlint

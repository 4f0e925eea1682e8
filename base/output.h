#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tensorlint {

/// Writes to a temporary file beside `path` and renames it, so that no half-written file is ever seen there. A device
/// or FIFO that already exists is written to as it is.
std::optional<Error> write_file(const std::string& path, std::string_view text);

/// The same of a file's bytes in parts; what stood there before keeps its permissions.
/// `written` is called with each piece, of a few MB, that has been written: the caller may let go of its pages.
std::optional<Error> write_file(const std::string& path, std::span<const std::string_view> parts,
                                const std::function<void(std::string_view)>& written = nullptr);

/// The same for a name that the program chose, in a folder that was named: a device or FIFO there is an error.
std::optional<Error> write_file_in_folder(const std::string& path, std::span<const std::string_view> parts);

/// For a handler of signals that ends the process at once: removes the file that write_file has begun and not renamed.
/// The thread that writes it does not go on. Of several files that are written at a time only one is removed.
void remove_unfinished_file() noexcept;

std::optional<Error> write_stdout(std::string_view text);

/// Takes a text piece by piece.
using TextSink = std::function<void(std::string_view)>;
/// What makes a text, which is not to be in memory as a whole.
using TextSource = std::function<void(const TextSink& out)>;
std::optional<Error> write_file(const std::string& path, const TextSource& text);
std::optional<Error> write_stdout(const TextSource& text);
/// The whole text, where it is small.
std::string text_of(const TextSource& text);

/// The only way to standard error. It never fails: where standard error is closed or full there is nobody to tell, and
/// the exit code says it.
void write_stderr(std::string_view text) noexcept;

/// Takes the descriptors 0 to 2 where the process was started without them, so that no file that is opened later gets
/// one of these numbers and with it the messages. Reading and writing them fails as before.
void reserve_standard_streams();

/// Colours go to a terminal, or where FORCE_COLOR or CLICOLOR_FORCE ask for them, unless NO_COLOR, FORCE_COLOR=0,
/// CLICOLOR=0 or TERM=dumb turn them off. NO_COLOR wins over all others.
bool wants_colour();

}  // namespace tensorlint

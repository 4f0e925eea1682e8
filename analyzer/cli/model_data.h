#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ir/graph/model.h"

namespace tensorlint::cli {

/// Writes a model, whose file's bytes are `parts`, to `output`, where it finds the data that it keeps in other files:
/// external data is named relative to the model's folder. `model` is that model, with the path that its data is read
/// beside.
///
/// Written into another folder, the model needs its data there under the same names: files that are there already have
/// to hold the same bytes, and with `copy_data` those that are missing are copied, whole, so that offsets hold. Nothing
/// that stands there is replaced. Data comes first and the model last; where anything fails (or SIGINT, SIGTERM, SIGHUP
/// come), what was made so far is taken away again. Returns a line for each file that was copied. Errors: `output` is
/// one of the data files; data is missing there and not to be copied, or there with other bytes; data that cannot be
/// read (see open_external_file) or written.
///
/// `written`: see write_file.
Result<std::string> write_model(const Model& model, std::span<const std::string_view> parts, const std::string& output,
                                bool copy_data, const std::function<void(std::string_view)>& written = nullptr);

}  // namespace tensorlint::cli

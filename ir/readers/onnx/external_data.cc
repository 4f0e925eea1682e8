#include "ir/readers/onnx/external_data.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "base/paths.h"

namespace tensorlint {
namespace {

constexpr std::size_t kMaxFaults = 1000;
constexpr int kMaxLinks = 16;
constexpr std::size_t kMaxLevels = 64;
/// Of a location and the links on its way: a link of a page of `d/../` makes some thousand calls of the system.
/// Components past these are not even taken out of a link.
constexpr std::size_t kMaxComponents = 64;
/// Of all locations of a model, each time that it is read: thousands of files may lie behind one link.
constexpr std::size_t kMaxComponentsOfModel = std::size_t{1} << 15;

/// A folder directly inside, or `..`; links are not followed.
Descriptor open_folder(const Descriptor& folder, const std::string& name) {
  return Descriptor(::openat(folder.number(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// Components of a path, `.` and empty ones left out: the first ones of them, the last of these first.
std::vector<std::string> reversed_components(std::string_view path,
                                             std::size_t limit = std::numeric_limits<std::size_t>::max()) {
  std::vector<std::string> components;
  while (!path.empty() && components.size() < limit) {
    const std::string_view component = take_component(path);
    if (!component.empty() && component != ".") components.emplace_back(component);
  }
  std::reverse(components.begin(), components.end());
  return components;
}

/// One spelling of a path.
std::string normalised(std::string_view path) {
  std::vector<std::string> components = reversed_components(path);
  std::reverse(components.begin(), components.end());
  return fmt::format("{}{}{}", path.starts_with('/') ? "/" : "", fmt::join(components, "/"),
                     path.ends_with('/') ? "/" : "");
}

Error system_error(std::string_view location, int code) {
  return {fmt::format("external data `{}`: {}", location, std::strerror(code)), {}};
}
Error leaves(std::string_view location) {
  return {fmt::format("external data `{}` leads out of the model's folder", location), {}};
}

Result<ExternalFile> open_regular(const Descriptor& folder, const std::string& name, std::string_view location) {
  Descriptor file(::openat(folder.number(), name.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY));
  struct ::stat status{};
  if (!file.ok() || ::fstat(file.number(), &status) != 0) return system_error(location, errno);
  if (!S_ISREG(status.st_mode)) return Error{fmt::format("external data `{}` is not a regular file", location), {}};
  return ExternalFile(std::move(file), static_cast<std::uint64_t>(status.st_size));
}

/// The file that a link of a hub's cache means: N times `..`, then `blobs/FILE`, where the folder reached also has
/// `snapshots`. Nothing for any other link.
std::optional<Result<ExternalFile>> open_blob(const Descriptor& beside, std::string_view target,
                                              std::string_view location, std::size_t& components) {
  constexpr std::string_view kUp = "../", kBlobs = "blobs/";
  std::size_t levels = 0;
  for (; target.starts_with(kUp); target.remove_prefix(kUp.size())) ++levels;
  if (levels < 2 || levels > kMaxLevels || !target.starts_with(kBlobs)) return std::nullopt;
  const std::string name(target.substr(kBlobs.size()));
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) return std::nullopt;
  components += levels;
  Descriptor at = open_folder(beside, ".");
  for (std::size_t i = 0; i < levels && at.ok(); ++i) at = open_folder(at, "..");
  if (!at.ok() || !open_folder(at, "snapshots").ok()) return std::nullopt;
  const Descriptor blobs = open_folder(at, "blobs");
  if (!blobs.ok()) return std::nullopt;
  return open_regular(blobs, name, location);
}

std::optional<std::uint64_t> decimal(std::string_view text) {
  std::uint64_t number = 0;
  if (text.empty() || !std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return std::nullopt;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size() ||
      number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return std::nullopt;
  return number;
}

/// Calls `visit` for each tensor of the model with the value that it initialises or the node whose attribute it is.
template <typename Visit>
void for_each_tensor(const Model& model, const Visit& visit_tensor) {
  const auto visit = [&](const Tensor* tensor, GraphId graph, NodeId node, ValueId value) {
    if (tensor != nullptr) visit_tensor(*tensor, graph, node, value);
  };
  const auto visit_attribute = [&](const Attribute& attribute, GraphId graph, NodeId node) {
    visit(attribute.tensor, graph, node, ValueId::kAbsent);
    for (const Tensor* const tensor : attribute.tensors) visit(tensor, graph, node, ValueId::kAbsent);
    if (attribute.sparse == nullptr) return;
    visit(attribute.sparse->values, graph, node, ValueId::kAbsent);
    visit(attribute.sparse->indices, graph, node, ValueId::kAbsent);
  };

  for (const ValueId id : model.values.ids()) {
    const Value& value = model.value(id);
    visit(value.initializer, value.graph, NodeId::kNone, id);
    if (value.sparse_initializer == nullptr) continue;
    visit(value.sparse_initializer->values, value.graph, NodeId::kNone, id);
    visit(value.sparse_initializer->indices, value.graph, NodeId::kNone, id);
  }
  for (const Node& node : model.nodes)
    for (const Attribute& attribute : model.attributes(node)) visit_attribute(attribute, node.graph, model.id_of(node));
  for (const GraphId id : model.graphs.ids())
    for (const Attribute& attribute : model.graph(id).attribute_defaults) visit_attribute(attribute, id, NodeId::kNone);
}

}  // namespace

ExternalFolder::ExternalFolder(const std::string& model_path) {
  const std::size_t slash = model_path.rfind('/');
  path_ = slash == std::string::npos ? "." : model_path.substr(0, slash + 1);
}

const std::string& ExternalFolder::real_path() {
  if (!real_path_) {
    real_path_ = real_folder(path_);
    if (!real_path_->empty() && !real_path_->ends_with('/')) *real_path_ += '/';
  }
  return *real_path_;
}

Result<ExternalFile> ExternalFolder::open(std::string_view location) {
  if (location.empty()) return Error{"external data without a location", {}};
  if (location.find('\0') != std::string_view::npos)
    return Error{"external data whose location has a zero byte in it", {}};
  if (location.size() >= PATH_MAX) return Error{"external data whose location is longer than any path", {}};
  if (location.front() == '/') return Error{fmt::format("external data `{}` is an absolute path", location), {}};
  std::vector<std::string> pending = reversed_components(location);
  if (std::find(pending.begin(), pending.end(), "..") != pending.end()) return leaves(location);
  if (pending.empty() || location.back() == '/')
    return Error{fmt::format("external data `{}` is not a regular file", location), {}};

  if (!folder_.ok()) folder_ = Descriptor(::open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder_.ok()) return system_error(location, errno);
  // The way down from the model's folder. A link's target is walked like any path, so `..` in it steps back here, and
  // never before the first.
  std::vector<Descriptor> way;
  way.push_back(open_folder(folder_, "."));
  if (!way.back().ok()) return system_error(location, errno);
  int links = 0;
  std::size_t walked = 0;
  while (!pending.empty()) {
    if (++walked > kMaxComponents) return system_error(location, ENAMETOOLONG);
    if (++components_ > kMaxComponentsOfModel)
      return Error{fmt::format("external data `{}`: the model's files lie behind too many folders and links", location),
                   {}};
    const std::string name = std::move(pending.back());
    pending.pop_back();
    if (name == "..") {
      if (way.size() == 1) return leaves(location);
      way.pop_back();
      continue;
    }
    struct ::stat status{};
    if (::fstatat(way.back().number(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      return system_error(location, errno);
    if (S_ISLNK(status.st_mode)) {
      if (++links > kMaxLinks) return system_error(location, ELOOP);
      char text[PATH_MAX];
      const ::ssize_t length = ::readlinkat(way.back().number(), name.c_str(), text, sizeof text);
      if (length < 0) return system_error(location, errno);
      std::string_view target(text, static_cast<std::size_t>(length));
      if (target.starts_with('/')) {
        const std::string& root = real_path();
        if (root.empty() || !target.starts_with(root)) return leaves(location);
        target.remove_prefix(root.size());
        way.erase(way.begin() + 1, way.end());
      }
      if (pending.empty())
        if (auto blob = open_blob(way.back(), target, location, components_)) return *std::move(blob);
      for (std::string& component : reversed_components(target, kMaxComponents + 1 - walked))
        pending.push_back(std::move(component));
      continue;
    }
    if (pending.empty()) return open_regular(way.back(), name, location);
    if (way.size() == kMaxLevels) return system_error(location, ENAMETOOLONG);
    Descriptor next = open_folder(way.back(), name);
    if (!next.ok()) return system_error(location, errno);
    way.push_back(std::move(next));
  }
  return Error{fmt::format("external data `{}` is not a regular file", location), {}};
}

Result<ExternalFile> open_external_file(const std::string& model_path, std::string_view location) {
  return ExternalFolder(model_path).open(location);
}

const Result<std::uint64_t>& ExternalFolder::size_of(std::string_view location) {
  std::string name = normalised(location);
  const auto known = sizes_.find(name);
  if (known != sizes_.end()) return known->second;
  const Result<ExternalFile> file = open(location);
  return sizes_.emplace(std::move(name), file ? Result<std::uint64_t>(file->size()) : file.error()).first->second;
}

Result<ExternalRange> external_range(const Tensor& tensor, std::uint64_t file_size, std::uint64_t* ends_past) {
  ExternalRange range;
  // One that is given and empty is no number either.
  if (tensor.offset_text.data() != nullptr) {
    const auto offset = decimal(tensor.offset_text);
    if (!offset)
      return Error{fmt::format("external offset `{}` is not a number of bytes", tensor.offset_text), tensor.position};
    range.offset = *offset;
  }
  std::optional<std::uint64_t> wanted;
  if (const auto count = tensor.element_count(); count && is_known_dtype(tensor.dtype_code))
    wanted = packed_bytes(static_cast<DType>(tensor.dtype_code), *count);
  if (tensor.length_text.data() != nullptr) {
    const auto length = decimal(tensor.length_text);
    if (!length)
      return Error{fmt::format("external length `{}` is not a number of bytes", tensor.length_text), tensor.position};
    range.length = *length;
    if (wanted && *wanted != *length)
      return Error{fmt::format("external data of {} bytes where dims and dtype take {}", *length, *wanted),
                   tensor.position};
  } else if (wanted) {
    range.length = *wanted;
  } else {
    return Error{"external data without a length, and dims that give none", tensor.position};
  }
  if (range.offset > file_size || range.length > file_size - range.offset) {
    if (ends_past != nullptr) *ends_past = range.offset + range.length;
    return Error{fmt::format("external data ends at byte {}, the file `{}` has {}", range.offset + range.length,
                             tensor.location, file_size),
                 tensor.position};
  }
  return range;
}

std::vector<std::string> external_locations(const Model& model) {
  std::vector<std::string> locations;
  std::set<std::string> known;
  for_each_tensor(model, [&](const Tensor& tensor, GraphId, NodeId, ValueId) {
    if (!tensor.external) return;
    std::string location = normalised(tensor.location);
    if (known.insert(location).second) locations.push_back(std::move(location));
  });
  return locations;
}

std::vector<ExternalFault> check_external_data(const Model& model) {
  ExternalFolder folder(model.path);
  return check_external_data(model, folder);
}

std::vector<ExternalFault> check_external_data(const Model& model, ExternalFolder& folder) {
  struct File {
    std::optional<std::uint64_t> size;  ///< none: it could not be opened
    std::size_t fault = 0;
    std::size_t others = 0;  ///< tensors after the first that miss it too
    std::uint64_t need = 0;  ///< bytes, where it is too short
  };
  std::map<std::string, File> files;
  std::vector<ExternalFault> faults;

  const auto add = [&](const Tensor& tensor, GraphId graph, NodeId node, ValueId value, std::string message) {
    faults.push_back({{.kind = StructureFault::Kind::kBrokenExternalData,
                       .graph = graph,
                       .node = node,
                       .value = value,
                       .tensor = &tensor,
                       .message = std::move(message),
                       .position = tensor.position},
                      {},
                      0,
                      0});
  };
  const auto check = [&](const Tensor& tensor, GraphId graph, NodeId node, ValueId value) {
    if (!tensor.external || faults.size() >= kMaxFaults) return;
    const std::string_view name = model.text(tensor.name);
    const auto [at, is_new] = files.try_emplace(normalised(tensor.location));
    File& file = at->second;
    if (is_new) {
      const Result<std::uint64_t>& opened = folder.size_of(tensor.location);
      if (opened) {
        file.size = *opened;
      } else {
        file.fault = faults.size();
        add(tensor, graph, node, value, fmt::format("tensor `{}`: {}", name, opened.error().message));
        return;
      }
    }
    if (!file.size) {
      ++file.others;
      return;
    }
    std::uint64_t end = 0;
    const Result<ExternalRange> range = external_range(tensor, *file.size, &end);
    if (range) return;
    add(tensor, graph, node, value, fmt::format("tensor `{}`: {}", name, range.error().message));
    if (end == 0) return;
    file.need = std::max(file.need, end);
    faults.back().short_file = tensor.location;
    faults.back().file_size = *file.size;
  };
  for_each_tensor(model, check);
  for (ExternalFault& fault : faults)
    if (!fault.short_file.empty()) fault.file_need = files.at(normalised(fault.short_file)).need;

  for (const auto& [location, file] : files)
    if (file.others != 0)
      faults[file.fault].message +=
          fmt::format(" ({} more {} there)", file.others, file.others == 1 ? "tensor is" : "tensors are");
  return faults;
}

}  // namespace tensorlint

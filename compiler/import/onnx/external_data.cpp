#include "compiler/import/onnx/external_data.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "compiler/import/faults.h"
#include "ir/printable.h"
#include "ir/text.h"

namespace burin {
namespace {

namespace fs = std::filesystem;

std::uint64_t number_of(const std::string& text, std::string_view what, const std::string& at) {
  const auto value = parse_number<std::uint64_t>(text);
  if (!value) bad_input(at, "the {} of its external data is {}, no number", what, in_quotes(text));
  return *value;
}

// True when `path` is `folder` or lies below it; both without links and dots.
bool lies_in(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

}  // namespace

ExternalData::ExternalData(const std::string& model_path) : folder_(fs::path(model_path).parent_path()) {
  if (folder_.empty()) folder_ = fs::path(".");
}

std::string_view ExternalData::file(const std::string& location, const std::string& at) {
  if (const auto found = files_.find(location); found != files_.end()) return found->second->bytes();
  const std::string where = fmt::format("{}: its external data {}", at, in_quotes(location));
  const fs::path relative(location);
  if (location.empty() || !is_plain_text(location)) fail(ErrorKind::bad_input, "{} is no file's name", where);
  if (relative.is_absolute() || relative.has_root_path()) {
    fail(ErrorKind::bad_input, "{} is an absolute path; it must lie beside the model", where);
  }
  if (std::find(relative.begin(), relative.end(), "..") != relative.end()) {
    fail(ErrorKind::bad_input, "{} leaves the model's folder by '..'; it must lie beside the model", where);
  }
  std::error_code error;
  const fs::path folder = fs::canonical(folder_, error);
  if (error) bad_input(where, "the folder '{}' cannot be read: {}", folder_.string(), error.message());
  const fs::path path = fs::canonical(folder / relative, error);
  if (error) fail(ErrorKind::bad_input, "{} cannot be opened: {}", where, error.message());
  if (!lies_in(path, folder)) {
    fail(ErrorKind::bad_input, "{} is a link out of the model's folder; it must lie beside the model", where);
  }
  auto mapped = std::make_unique<MappedFile>(path.string());
  return files_.emplace(location, std::move(mapped)).first->second->bytes();
}

std::string_view ExternalData::bytes(const ExternalPlace& place, std::int64_t needed, const std::string& at) {
  const std::uint64_t offset = place.offset.empty() ? 0 : number_of(place.offset, "offset", at);
  const std::uint64_t wanted = static_cast<std::uint64_t>(needed);
  const std::string_view content = file(place.location, at);
  if (offset > content.size()) {
    bad_input(at, "its external data start at byte {} of {}, which has {} bytes", offset, in_quotes(place.location),
              content.size());
  }
  const std::uint64_t left = content.size() - offset;
  const std::uint64_t length = place.length.empty() ? left : number_of(place.length, "length", at);
  if (length != wanted) bad_input(at, "its external data are {} bytes, its shape needs {}", length, wanted);
  if (length > left) {
    bad_input(at, "its external data are bytes {} to {} of {}, which has {} bytes", offset, offset + length,
              in_quotes(place.location), content.size());
  }
  return content.substr(offset, length);
}

}  // namespace burin

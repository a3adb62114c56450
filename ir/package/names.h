// What may stand as a name in a package. Everything in a package that was read is untrusted; names end up in messages,
// in look-ups by symbol and perhaps, one day, in paths on disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ir/package/manifest.h"
#include "ir/printable.h"

namespace burin {

inline constexpr std::size_t kMaxNameBytes = 4096;  // of a tensor, of the weights file

// Relative, of names joined by '/', none of them empty, "." or ".."; no backslash, no control character; not the
// manifest's own name.
bool is_package_path(std::string_view path);
inline constexpr std::string_view kManifestPath = "manifest.json";

// What a deflated entry may claim to expand to, over what it takes in the package; ten times what PTX does. What would
// expand to more is stored as it is.
inline constexpr std::uint64_t kMaxExpansion = 100;

bool is_symbol(std::string_view text);  // [A-Za-z_][A-Za-z0-9_]*

// The size of the tensor's file; nothing when the shape is not one a package can hold.
std::optional<std::int64_t> tensor_bytes(const TensorRecord& tensor);

}  // namespace burin

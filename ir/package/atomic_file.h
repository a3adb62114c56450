// Writes a whole file or nothing.
#pragma once

#include <string>
#include <string_view>

namespace burin {

// Writes `bytes` to a temporary file in the directory of `path`, forces it to the disk and renames it to `path`, which
// may exist. Whoever opens `path` sees the old content or the new one, never a part. On an error the temporary file is
// removed and `path` is as it was. A symbolic link is followed. Throws Error(usage), naming `path` and the system's
// reason, since what helps is another path or more room.
void write_file_atomically(const std::string& path, std::string_view bytes);

}  // namespace burin

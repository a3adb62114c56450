// Writes a whole file or nothing.
#pragma once

#include <string>
#include <string_view>

namespace burin {

// Whether a file must be on the disk when the call returns. What can be made again need not.
enum class Durability { forced, left_to_system };

// Writes `bytes` to a temporary file in the directory of `path`, forces it to the disk and puts it in the place of
// `path`, which may exist. Whoever opens `path` sees the old content or the new one, never a part. On an error the
// temporary file is gone and `path` is as it was. It is gone as well when the process is killed, but where the file
// system knows no files without a name, or in the moment of replacing. A symbolic link is followed. Throws
// Error(usage), naming `path` and the system's reason, since what helps is another path or more room.
void write_file_atomically(const std::string& path, std::string_view bytes, Durability durability = Durability::forced);

// Throws what write_file_atomically() would throw before it has written anything: `path` is a folder, its folder is
// absent or takes no files. A temporary file is made and removed again.
void check_can_write(const std::string& path);

// Throws Error(usage) where files cannot be made in the folder `path`, which may have to be made first.
void check_can_fill_folder(const std::string& path);

}  // namespace burin

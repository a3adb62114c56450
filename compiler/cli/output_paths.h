// Where a command's results go: checked before its work begins, so that nobody waits for what cannot be kept.
#pragma once

#include <string>
#include <vector>

namespace burin {

// Throws Error(usage), naming `option`, where the file `path` cannot be written, or is one of `inputs`, which the
// command reads.
void check_output_file(const std::string& option, const std::string& path, const std::vector<std::string>& inputs = {});

// The same for several files, which must also differ from each other.
void check_output_files(const std::string& option, const std::vector<std::string>& paths,
                        const std::vector<std::string>& inputs = {});

// Throws Error(usage), naming `option`, where files cannot be written into the folder `path`, which is made when the
// first file is.
void check_output_folder(const std::string& option, const std::string& path);

}  // namespace burin

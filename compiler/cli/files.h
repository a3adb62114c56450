// Files that a command is given to read, packages above all, and to write: what cannot be written is said before the
// work, so that nobody waits for what cannot be kept.
#pragma once

#include <string>
#include <vector>

#include "ir/package/package.h"

namespace burin {

// A file named *.burin, or an archive whose first file is a package's manifest.
bool is_package(const std::string& path);

// read_package(). Where the file is a model or weights, the error says that it must be compiled first.
Package read_given_package(const std::string& path);

// Throws Error(bad_input) where `path`, which should be a model or weights, is a package. `what`: "--against", "INPUT".
void refuse_package(const std::string& what, const std::string& path);

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

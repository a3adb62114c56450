#include "compiler/functions/user_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>

#include "compiler/assemble/nvrtc.h"
#include "compiler/assemble/ptx_directives.h"
#include "compiler/functions/host_library.h"
#include "compiler/import/names.h"
#include "compiler/kernel_cache.h"
#include "ir/error.h"
#include "ir/printable.h"
#include "ir/text.h"

namespace burin {
namespace {

constexpr std::size_t kMaxTextBytes = std::size_t{4} << 20;

std::string read_file(const std::string& option, const std::string& path, std::size_t limit) {
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path)) {
    fail(ErrorKind::bad_input, "{}: {} cannot be read", option, in_quotes(path));
  }
  std::string text(limit + 1, '\0');  // one more than there may be
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > limit) {
    fail(ErrorKind::bad_input, "{}: {} has more than {} bytes", option, in_quotes(path), limit);
  }
  return text;
}

std::string folder_of(const std::string& path) { return std::filesystem::absolute(path).parent_path().string(); }

// "// Cuda compilation tools, release 13.0, V13.0.88": who made PTX.
std::string compiler_of(const std::string& ptx) {
  const std::size_t at = ptx.find("// Cuda compilation tools");
  return at == ptx.npos ? "" : ptx.substr(at, ptx.find('\n', at) - at);
}

// One for the process: it keeps memory of its own.
const Nvrtc& nvrtc() {
  static const std::pair<std::unique_ptr<Nvrtc>, std::string> opened = [] {
    std::string why;
    std::unique_ptr<Nvrtc> library = Nvrtc::open(Nvrtc::candidates(), why);
    return std::pair(std::move(library), why);
  }();
  if (opened.first == nullptr) {
    fail(ErrorKind::unsupported,
         "--operator needs NVRTC, which compiles its text, and there is none: {} (burin doctor says where was looked)",
         opened.second);
  }
  return *opened.first;
}

}  // namespace

UserOperators::UserOperators(const std::vector<std::string>& given) {
  for (const std::string& item : given) {
    const std::string option = fmt::format("--operator {}", item);
    const std::size_t end = item.find('=');
    const std::string name = item.substr(0, end), path = end == item.npos ? "" : item.substr(end + 1);
    if (name.empty() || path.empty())
      fail(ErrorKind::usage, "{}: is not NAME=FILE, such as my.Domain::Op=op.cu", option);
    const std::string identifier = UserFunction{.name = name}.identifier();
    if (!is_identifier(identifier)) {
      fail(ErrorKind::usage, "{}: {} is no name of a function in C++, which the operator's must be", option,
           in_quotes(identifier));
    }
    Files& files = files_[name];
    const bool is_library = has_ending(path, ".so");
    if (is_library ? !files.library.empty() : files.has_text()) {
      fail(ErrorKind::usage, "{}: there is a file of this kind for {} already", option, name);
    }
    if (!is_library) {
      files.text = {path, read_file(option, path, kMaxTextBytes)};
    } else if (!std::filesystem::exists(path)) {
      fail(ErrorKind::bad_input, "{}: {} cannot be read", option, in_quotes(path));
    } else {
      files.library = path;
    }
  }
}

SharedFunction UserOperators::make(const std::string& name, int inputs, std::vector<UserAttribute> attributes) {
  const auto files = files_.find(name);
  BURIN_CHECK(files != files_.end(), "there is no operator {} of a user's", name);
  UserFunction function{.name = name, .inputs = inputs, .attributes = std::move(attributes)};
  const auto found = std::ranges::find_if(made_, [&](const Made& made) {
    const UserFunction& other = *made.function;
    return other.name == name && other.inputs == inputs && other.attributes == function.attributes;
  });
  if (found != made_.end()) return found->function;
  // What a library was made of nobody knows.
  const FunctionText unknown{files->second.library, files->second.library};
  function.source_hash = (files->second.has_text() ? files->second.text : unknown).hash(function);
  if (const auto faults = verify(function); !faults.empty()) {
    fail(ErrorKind::bad_input, "operator {}: {}", name, faults.front());
  }
  made_.push_back({std::make_shared<UserFunction>(std::move(function)), &files->second});
  return made_.back().function;
}

std::string UserOperators::ptx_of(const Made& made, const std::string& arch) {
  const UserFunction& function = *made.function;
  const FunctionText& text = made.files->text;
  if (!made.files->has_text()) {
    fail(ErrorKind::usage, "--operator {}={}: a GPU needs the operator's text, as CUDA C++", function.name,
         made.files->library);
  }
  // Exact quotients and roots are calls, which keep products of tensor cores waiting.
  const Nvrtc::Result result =
      nvrtc().compile(text.for_device(function), text.path,
                      {"--gpu-architecture=compute_" + arch.substr(arch.find('_') + 1), "--std=c++20",
                       "--relocatable-device-code=true", "--prec-div=false", "--prec-sqrt=false",
                       "--device-as-default-execution-space", "--include-path=" + folder_of(text.path)});
  if (result.ptx.empty()) {
    fail(ErrorKind::bad_input, "operator {}: NVRTC {} does not compile its text ({} is looked for):\n{}", function.name,
         nvrtc().version(), wanted_signature(function), trim(result.log));
  }
  return result.ptx;
}

void UserOperators::compile_for_device(const std::string& arch) {
  for (Made& made : made_) {
    if (made.function->ptx.empty()) made.function->ptx = ptx_of(made, arch);
  }
}

UserOperators::CodeFaults UserOperators::compare_code(const Package& package) {
  CodeFaults result;
  std::set<std::string> seen;
  for (const Kernel& kernel : package.manifest.kernels) {
    for (const KernelFunction& packed : kernel.functions) {
      if (!seen.insert(packed.path).second) continue;
      const auto made = std::ranges::find_if(
          made_, [&](const Made& known) { return known.function->symbol() == packed.function.symbol(); });
      const auto note = [&](std::string_view why) {
        result.notes.push_back(fmt::format("the PTX of operator {} in the package was not compared with its text: {}",
                                           describe(packed.function), why));
      };
      if (made == made_.end() || !made->files->has_text()) {
        note("it was not given");
        continue;
      }
      const std::string ptx = *package.files.at(packed.path).content();
      try {
        const std::string expected = ptx_of(*made, target_of(ptx));
        if (expected == ptx) continue;
        // Another version of NVRTC writes another text.
        if (compiler_of(expected) != compiler_of(ptx)) {
          note(fmt::format("NVRTC {} did not make it", nvrtc().version()));
        } else {
          result.faults.push_back(fmt::format("operator {}: {} is not what NVRTC makes of {}",
                                              describe(packed.function), packed.path, made->files->text.path));
        }
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::unsupported && error.kind() != ErrorKind::bad_input) throw;
        note(error.what());
      }
    }
  }
  return result;
}

void UserOperators::compile_for_host() {
  for (Made& made : made_) {
    UserFunction& function = *made.function;
    if (function.reference != nullptr) continue;
    if (!made.files->library.empty()) {
      const auto is_it = [&](const Made& other) { return other.function->name == function.name; };
      if (std::ranges::count_if(made_, is_it) > 1) {
        fail(ErrorKind::unsupported,
             "--operator {}={}: nodes with different attributes are different functions, and a library has one",
             function.name, made.files->library);
      }
      load_for_host(function, made.files->library);
      continue;
    }
    made.compiler = host_compiler();
    burin::compile_for_host(function, made.files->text.for_host(function), folder_of(made.files->text.path));
  }
}

void UserOperators::check_used(const std::string& where) const {
  std::vector<std::string> used;
  for (const Made& made : made_) used.push_back(made.function->name);
  check_used(where, used);
}

void UserOperators::check_used(const std::string& where, const std::vector<std::string>& operators) const {
  for (const auto& [name, files] : files_) {
    if (std::ranges::find(operators, name) != operators.end()) continue;
    fail(ErrorKind::usage, "--operator {}={} has no effect here: {} has no operator of this name", name,
         files.has_text() ? files.text.path : files.library, where);
  }
}

std::vector<UserOperators::Reference> UserOperators::references() const {
  std::vector<Reference> references;
  for (const Made& made : made_) {
    if (made.function->reference == nullptr) continue;
    // With other attributes it is another function of the same text.
    if (std::ranges::find(references, made.function->name, &Reference::name) != references.end()) continue;
    references.push_back({made.function->name,
                          made.compiler.empty()
                              ? made.files->library
                              : fmt::format("{}, compiled by {}", made.files->text.path, made.compiler),
                          made.function->in_double});
  }
  return references;
}

HostFunctions UserOperators::give(Manifest& manifest) {
  HostFunctions functions;
  std::map<std::string, SharedFunction> known;  // by the package's symbols
  for (Kernel& kernel : manifest.kernels) {
    for (const KernelFunction& packed : kernel.functions) {
      const UserFunction& said = packed.function;
      const std::string symbol = said.symbol();
      if (!has(said.name)) continue;
      const SharedFunction made = make(said.name, said.inputs, said.attributes);
      // Nothing of it is compiled before that is known.
      if (files_.find(said.name)->second.library.empty() && made->source_hash != said.source_hash) {
        fail(ErrorKind::bad_input, "--operator {}={}: the package was compiled from another text of this operator",
             said.name, files_.find(said.name)->second.text.path);
      }
      const auto [entry, is_new] = known.try_emplace(symbol, made);
      if (!is_new && entry->second != made) {
        fail(ErrorKind::bad_input, "the package has two operators of a user's with the symbol {}", symbol);
      }
    }
    if (!kernel.layer || !kernel.layer->shape.epilogue.function) continue;
    SharedFunction& user = kernel.layer->shape.epilogue.function->user;
    if (user == nullptr) continue;
    if (const auto found = known.find(user->symbol()); found != known.end()) user = found->second;
  }
  compile_for_host();
  for (const auto& [symbol, made] : known) functions[symbol] = made->value;
  return functions;
}

}  // namespace burin

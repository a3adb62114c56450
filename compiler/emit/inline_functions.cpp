#include "compiler/emit/inline_functions.h"

#include <fmt/format.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>

#include <algorithm>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string_view>

#include "compiler/specialise/function_code.h"
#include "ir/error.h"

namespace burin {
namespace {

constexpr std::string_view kHeaderEnd = ".address_size 64";
constexpr std::string_view kEndLabel = "$L__end_of_operator";
constexpr char kOperand = '\1';  // stands for the "$" of an operand

bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
         c == '%' || c == '.';
}
bool starts_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$'; }

// Calls `visit` with each word, and with each other character by itself.
template <typename Visit>
void each_token(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    std::size_t size = 0;
    while (size < text.size() && is_word_char(text[size])) ++size;
    visit(text.substr(0, std::max<std::size_t>(size, 1)));
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
}

// `text` with other words where `other` says so.
template <typename Other>
std::string with_words(std::string_view text, const Other& other) {
  std::string result;
  each_token(text, [&](std::string_view token) {
    const std::optional<std::string> replaced = is_word_char(token.front()) ? other(token) : std::nullopt;
    result += replaced ? *replaced : std::string(token);
  });
  return result;
}

std::string without_comments(std::string_view text) {
  std::string result;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    const std::string_view rest = text.substr(i);
    if (!quoted && rest.starts_with("/*")) {
      const std::size_t end = text.find("*/", i + 2);
      if (end == text.npos) break;
      i = end + 1;
      result += ' ';
      continue;
    }
    if (!quoted && rest.starts_with("//")) i = std::min(text.find('\n', i), text.size());
    if (i < text.size()) result += text[i];
  }
  return result;
}

[[noreturn]] void refuse(const std::string& symbol, std::string_view why) {
  fail(ErrorKind::unsupported, "the PTX of '{}' cannot be put into a kernel: {}", symbol, why);
}

// "9.0", of ".version 9.0".
std::string version_of(std::string_view text, const std::string& symbol) {
  constexpr std::string_view kVersion = ".version ";
  constexpr std::size_t kMostDigits = 3;
  const std::size_t at = text.find(kVersion);
  std::string_view number = at == text.npos ? "" : text.substr(at + kVersion.size());
  number = number.substr(0, number.find_first_not_of("0123456789."));
  const std::size_t dot = number.find('.');
  const auto is_short = [&](std::string_view digits) {
    return !digits.empty() && digits.size() <= kMostDigits && digits.find('.') == digits.npos;
  };
  if (dot == number.npos || !is_short(number.substr(0, dot)) || !is_short(number.substr(dot + 1))) {
    refuse(symbol, "it does not say its version");
  }
  return std::string(number);
}

// Matching takes stack for each character, and a text from a package may be anything.
void check_lines(std::string_view body, const std::string& symbol) {
  constexpr std::size_t kMostBytes = 4096;
  while (!body.empty()) {
    const std::size_t end = std::min(body.find('\n'), body.size());
    if (end > kMostBytes) refuse(symbol, "a line of it is too long");
    body.remove_prefix(std::min(end + 1, body.size()));
  }
}

// 9.0 comes after 8.5, and 8.10 after 8.9.
std::pair<int, int> number_of(const std::string& version) {
  if (version.empty()) return {};
  const std::size_t dot = version.find('.');
  return {std::stoi(version.substr(0, dot)), std::stoi(version.substr(dot + 1))};
}

// Where the function stands in a text without comments.
struct FunctionPlace {
  std::size_t begin = 0, body = 0, body_end = 0;  // of its directive, behind its brace, before the brace that ends it
};

FunctionPlace find_function(const std::string& text, const std::string& symbol) {
  FunctionPlace place;
  const std::size_t header = text.find(kHeaderEnd) + kHeaderEnd.size();  // before which no function stands
  for (std::size_t at = text.find(symbol + "(", header); at != text.npos; at = text.find(symbol + "(", at + 1)) {
    const std::size_t close = text.find(')', at), brace = text.find('{', at), end = text.find(';', at);
    if (close == text.npos || brace == text.npos || brace > end || is_word_char(text[at - 1])) continue;
    const std::size_t before = text.find_last_of(";}", at);
    place.begin = std::max(before == text.npos ? 0 : before + 1, header);
    place.body = brace + 1;
    int depth = 1;
    for (std::size_t i = place.body; i < text.size(); ++i) {
      depth += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
      if (depth > 0) continue;
      place.body_end = i;
      return place;
    }
  }
  refuse(symbol, "the function is not in it");
}

using Words = std::set<std::string, std::less<>>;

// What stands beside the function: the definition of a table, or of a function.
struct OuterPart {
  std::string text;
  Words names, words;  // that it defines, and all that it has
};

std::string_view stripped(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

std::vector<OuterPart> outer_parts(const std::string& outside) {
  std::vector<OuterPart> parts(1);
  int depth = 0;
  each_token(outside, [&](std::string_view token) {
    OuterPart& part = parts.back();
    part.text += token;
    if (token == "{" || token == "(" || token == "[") ++depth;
    if (token == "}" || token == ")" || token == "]") --depth;
    if (is_word_char(token.front())) part.words.emplace(token);
    if (depth == 0 && starts_name(token.front())) part.names.emplace(token);
    const bool is_function = part.words.contains(".func");
    if (depth == 0 && (token == ";" || (token == "}" && is_function))) parts.emplace_back();
  });
  return parts;
}

// Those that the words, or what they need, use.
std::vector<OuterPart> used_parts(std::vector<OuterPart> parts, Words words, const std::string& symbol) {
  std::vector<bool> used(parts.size());
  for (bool more = true; more;) {
    more = false;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto is_used = [&](const std::string& name) { return words.contains(name); };
      if (used[i] || std::ranges::none_of(parts[i].names, is_used)) continue;
      used[i] = more = true;
      words.insert(parts[i].words.begin(), parts[i].words.end());
      if (parts[i].words.contains(".extern")) refuse(symbol, "it calls a function that is not in the operator's file");
    }
  }
  std::vector<OuterPart> result;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (used[i]) result.push_back(std::move(parts[i]));
  }
  return result;
}

// Whether what stands in quotes, as in .pragma "nounroll", are words: braces and semicolons there would mean nothing.
bool quotes_words(std::string_view text) {
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') {
      quoted = !quoted;
    } else if (quoted && !is_word_char(c) && c != ' ') {
      return false;
    }
  }
  return !quoted;
}

// Whether some registers stand in one line, of which all would have to be found.
bool declares_several(std::string_view body) {
  for (std::size_t at = body.find(".reg"); at != body.npos; at = body.find(".reg", at + 1)) {
    if (body.substr(at, body.find(';', at) - at).find(',') != body.npos) return true;
  }
  return false;
}

// Registers as the body declares them: with numbers behind the name, or without.
struct Registers {
  Words plain, numbered;

  explicit Registers(const std::string& body) {
    const std::regex declared("\\.reg[ \t]+\\.[a-z0-9]+[ \t]+(%[A-Za-z_]+)(<[0-9]+>)?");
    for (std::sregex_iterator it(body.begin(), body.end(), declared), end; it != end; ++it) {
      ((*it)[2].matched ? numbered : plain).insert((*it)[1]);
    }
  }
  bool has(std::string_view word) const {
    if (plain.contains(word) || numbered.contains(word)) return true;
    const std::size_t digits = word.find_last_not_of("0123456789") + 1;
    return digits < word.size() && numbered.contains(word.substr(0, digits));
  }
};

// Its parameters and its result are operands, and where it returns it goes to its end.
std::string with_operands(std::string body, const std::string& symbol) {
  const std::string operand(1, kOperand);
  for (int i = 0; i < 2; ++i) {
    const std::regex load(
        fmt::format("ld\\.param\\.([a-z0-9]+)([ \t]+%[A-Za-z0-9_]+,)[ \t]*\\[{}_param_{}(\\+0)?\\]", symbol, i));
    body = std::regex_replace(body, load, fmt::format("mov.$1$2 {}{}", operand, i + 1));
  }
  const std::regex store("st\\.param\\.([a-z0-9]+)[ \t]+\\[func_retval0(\\+0)?\\],");
  body = std::regex_replace(body, store, fmt::format("mov.$1 {}0,", operand));
  bool foreign = false;
  each_token(body, [&](std::string_view token) {
    foreign = foreign || token.starts_with(symbol) || token.starts_with("func_retval");
  });
  if (foreign) refuse(symbol, "its parameters are used in an unknown way");
  return with_words(body, [](std::string_view word) -> std::optional<std::string> {
    if (word == "ret" || word == "ret.uni") return fmt::format("bra {}", kEndLabel);
    return std::nullopt;
  });
}

}  // namespace

InlineCode inline_code(const std::string& ptx, const std::string& symbol) {
  if (ptx.size() > kMaxFunctionPtxBytes) {
    refuse(symbol, fmt::format("it has {} bytes, at most {} are read", ptx.size(), kMaxFunctionPtxBytes));
  }
  const auto is_text = [](char c) { return (c >= ' ' && c <= '~') || c == '\n' || c == '\t' || c == '\r'; };
  if (!std::ranges::all_of(ptx, is_text)) refuse(symbol, "it is no plain text");
  const std::string text = without_comments(ptx);
  const std::size_t header = text.find(kHeaderEnd);
  if (header == text.npos) refuse(symbol, "it has no header");
  if (!quotes_words(text)) refuse(symbol, "it has what NVRTC does not write");
  const FunctionPlace place = find_function(text, symbol);
  const std::string before = text.substr(header + kHeaderEnd.size(), place.begin - header - kHeaderEnd.size());
  const std::string own = text.substr(place.body, place.body_end - place.body);
  check_lines(own, symbol);
  if (declares_several(own)) refuse(symbol, "it has what NVRTC does not write");
  const std::string body = with_operands(own, symbol);
  Words words, names;
  each_token(body, [&](std::string_view token) { words.emplace(token); });
  std::string beside;
  for (const OuterPart& part : used_parts(outer_parts(before + text.substr(place.body_end + 1)), words, symbol)) {
    beside += fmt::format("{}{}", beside.empty() ? "" : "\n", stripped(part.text));
    names.insert(part.names.begin(), part.names.end());
  }
  // Two functions of a kernel may bring the same tables.
  const auto own_name = [&](std::string_view word) -> std::optional<std::string> {
    if (!names.contains(word)) return std::nullopt;
    return fmt::format("{}_{}", word, symbol);
  };
  // Its registers must not hide those of the kernel which are its operands.
  const Registers registers(body);
  std::string code = with_words(body, [&](std::string_view word) -> std::optional<std::string> {
    if (registers.has(word)) return fmt::format("%own_{}", word.substr(1));
    return own_name(word);
  });
  code = fmt::format("{{\n{}\n{}:\n}}", stripped(code), kEndLabel);
  std::string escaped;
  for (const char c : code) escaped += c == '$' ? "$$" : std::string(1, c == kOperand ? '$' : c);
  return {escaped, with_words(beside, own_name), version_of(text, symbol)};
}

OutsideCode inline_functions(llvm::Module& module) {
  OutsideCode outside;
  for (const auto& [symbol, ptx] : attached_functions(module)) {
    llvm::Function* function = module.getFunction(symbol);
    if (function == nullptr || !function->isDeclaration()) continue;
    const InlineCode code = inline_code(ptx, symbol);
    std::string constraints = "=&f";
    for (unsigned i = 0; i < function->arg_size(); ++i) constraints += ",f";
    const auto is_float = [](const llvm::Argument& argument) { return argument.getType()->isFloatTy(); };
    if (!function->getReturnType()->isFloatTy() || !llvm::all_of(function->args(), is_float) ||
        code.body.find(fmt::format("${}", function->arg_size() + 1)) != code.body.npos) {
      fail(ErrorKind::bad_input, "the module calls '{}' with other parameters than it has", symbol);
    }
    llvm::InlineAsm* body =
        llvm::InlineAsm::get(function->getFunctionType(), code.body, constraints, /*hasSideEffects=*/false);
    for (llvm::User* user : llvm::make_early_inc_range(function->users())) {
      auto* call = llvm::dyn_cast<llvm::CallInst>(user);
      if (call == nullptr || call->getCalledOperand() != function) {
        fail(ErrorKind::bad_input, "the module uses '{}' other than by a call", symbol);
      }
      llvm::IRBuilder<> builder(call);
      llvm::CallInst* inlined = builder.CreateCall(body, llvm::SmallVector<llvm::Value*>(call->args()));
      inlined->setDoesNotAccessMemory();
      inlined->setDoesNotThrow();
      call->replaceAllUsesWith(inlined);
      call->eraseFromParent();
    }
    function->eraseFromParent();
    if (!code.outside.empty()) outside.texts.push_back(code.outside);
    if (number_of(outside.version) < number_of(code.version)) outside.version = code.version;
  }
  return outside;
}

std::string add_outside(std::string ptx, const OutsideCode& outside) {
  if (outside.version.empty()) return ptx;
  constexpr std::string_view kVersion = ".version ";
  const std::size_t version = ptx.find(kVersion), end = ptx.find('\n', version);
  BURIN_CHECK(version != ptx.npos && end != ptx.npos, "PTX does not say its version");
  const std::size_t number = version + kVersion.size();
  if (number_of(ptx.substr(number, end - number)) < number_of(outside.version)) {
    ptx.replace(number, end - number, outside.version);
  }
  const std::size_t header = ptx.find(kHeaderEnd);
  BURIN_CHECK(header != ptx.npos, "PTX has no header");
  std::string texts;
  for (const std::string& text : outside.texts) texts += fmt::format("\n{}\n", text);
  return ptx.insert(header + kHeaderEnd.size(), texts);
}

}  // namespace burin

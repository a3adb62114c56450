#include "ir/cubin_info.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "ir/error.h"
#include "ir/printable.h"

namespace burin {
namespace {

constexpr std::uint16_t kMachineCuda = 190;         // EM_CUDA
constexpr std::uint32_t kSectionInfo = 0x70000000;  // SHT_CUDA_INFO
constexpr unsigned char kEntryFlag = 0x10;          // st_other: STO_CUDA_ENTRY
constexpr int kRegisterShift = 24;                  // older cubins keep the registers in the high byte of sh_info

// Formats and attributes of .nv.info records. Only records of format `sized` have more than four bytes.
constexpr std::uint8_t kFormatNone = 1, kFormatByte = 2, kFormatHalf = 3, kFormatSized = 4;
constexpr std::uint8_t kAttributeParameterBank = 0x0a, kAttributeFrameSize = 0x11, kAttributeParameter = 0x17,
                       kAttributeParameterBytes = 0x19, kAttributeRegisters = 0x2f;
constexpr int kParameterBytesShift = 18;  // of a parameter's third word
// The flags hold the compute capability: in their lowest byte, and from this version of the ABI on in the next.
constexpr unsigned char kAbiOfLaterFlags = 8;
constexpr int kLaterComputeShift = 8;

constexpr std::string_view kCode = ".text.", kInfo = ".nv.info", kKernelInfo = ".nv.info.", kShared = ".nv.shared.";

constexpr std::size_t kMaxSections = 100'000, kMaxFunctions = 1000, kMaxNameBytes = 1024, kMaxEntriesTold = 8,
                      kMaxSymbolsTold = 10'000;  // that .nv.info speaks of
constexpr int kMaxParameters = 64;

class CubinReader {
 public:
  explicit CubinReader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  T at(std::uint64_t offset, const char* what) const {
    T value;
    std::memcpy(&value, range(offset, sizeof(T), what).data(), sizeof(T));
    return value;
  }

  std::string_view range(std::uint64_t offset, std::uint64_t size, const char* what) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) {
      fail(ErrorKind::bad_input, "malformed cubin: {} ({} bytes at {}) reaches beyond its end at {}", what, size,
           offset, bytes_.size());
    }
    return bytes_.substr(offset, size);
  }

 private:
  std::string_view bytes_;
};

std::string_view name_in(std::string_view table, std::uint32_t offset, const char* what) {
  const std::string_view rest = table.substr(std::min<std::size_t>(offset, table.size()), kMaxNameBytes + 1);
  const std::size_t end = rest.find('\0');
  if (end == std::string_view::npos) {
    fail(ErrorKind::bad_input, "malformed cubin: {} {} {} its string table of {} bytes", what, offset,
         rest.size() > kMaxNameBytes ? fmt::format("is longer than {} bytes in", kMaxNameBytes) : "lies outside",
         table.size());
  }
  return rest.substr(0, end);
}

struct Section {
  Elf64_Shdr header;
  std::string_view name;
};

// The compute capability that the code is for.
int read_compute(const Elf64_Ehdr& header) {
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) fail(ErrorKind::bad_input, "not a cubin: not an ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    fail(ErrorKind::bad_input, "not a cubin: not a 64-bit little-endian ELF file");
  }
  if (header.e_machine != kMachineCuda) {
    fail(ErrorKind::bad_input, "not a cubin: an ELF file for machine {} instead of {}", header.e_machine, kMachineCuda);
  }
  const bool later = header.e_ident[EI_ABIVERSION] >= kAbiOfLaterFlags;
  return static_cast<int>((header.e_flags >> (later ? kLaterComputeShift : 0)) & 0xff);
}

std::vector<Section> read_sections(const CubinReader& reader, const Elf64_Ehdr& header) {
  if (header.e_shentsize != sizeof(Elf64_Shdr)) {
    fail(ErrorKind::bad_input, "malformed cubin: section headers of {} bytes instead of {}", header.e_shentsize,
         sizeof(Elf64_Shdr));
  }
  // From 0xff00 sections on, the first header holds the count and the index of the names (gABI, "Sections").
  std::uint64_t count = header.e_shnum;
  std::uint64_t names = header.e_shstrndx;
  const auto first = reader.at<Elf64_Shdr>(header.e_shoff, "section header 0");
  if (count == 0) count = first.sh_size;
  if (names == SHN_XINDEX) names = first.sh_link;
  if (count > kMaxSections) {
    fail(ErrorKind::bad_input, "malformed cubin: {} sections are more than {}", count, kMaxSections);
  }
  reader.range(header.e_shoff, count * sizeof(Elf64_Shdr), "the table of sections");

  std::vector<Section> sections(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    sections[i].header = reader.at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr), "a section header");
  }
  if (names >= count) fail(ErrorKind::bad_input, "malformed cubin: section {} of {} holds the names", names, count);
  const Elf64_Shdr& table = sections[names].header;
  const std::string_view text = reader.range(table.sh_offset, table.sh_size, "the section names");
  for (Section& section : sections) section.name = name_in(text, section.header.sh_name, "the section name at");
  return sections;
}

int to_count(std::uint64_t value) {
  return static_cast<int>(std::min<std::uint64_t>(value, std::numeric_limits<int>::max()));
}

// Records (format, attribute, value) of a section .nv.info: `take(attribute, value)` is called for each, with the bytes
// of the value.
template <typename Take>
void read_attributes(std::string_view records, const Take& take) {
  const CubinReader section(records);
  for (std::uint64_t at = 0; at < records.size();) {
    const auto format = section.at<std::uint8_t>(at, "an attribute");
    const auto attribute = section.at<std::uint8_t>(at + 1, "an attribute");
    const auto size = section.at<std::uint16_t>(at + 2, "an attribute");
    if (format == kFormatNone || format == kFormatByte || format == kFormatHalf) {
      take(attribute, records.substr(at + 2, sizeof(size)));
    } else if (format == kFormatSized) {
      take(attribute, section.range(at + 4, size, "the value of an attribute"));
      at += size;
    } else {
      fail(ErrorKind::bad_input, "malformed cubin: attribute of unknown format {}", format);
    }
    at += 4;
  }
}

// All symbols have them, by their index.
struct Attributes {
  std::map<std::uint32_t, int> registers, frames;
};

Attributes read_symbol_attributes(std::string_view records) {
  Attributes found;
  read_attributes(records, [&](std::uint8_t attribute, std::string_view bytes) {
    if (attribute != kAttributeRegisters && attribute != kAttributeFrameSize) return;
    const CubinReader value(bytes);
    const auto symbol = value.at<std::uint32_t>(0, "an attribute's symbol");
    const int count = to_count(value.at<std::uint32_t>(4, "an attribute's value"));
    std::map<std::uint32_t, int>& counts = attribute == kAttributeRegisters ? found.registers : found.frames;
    if (!counts.emplace(symbol, count).second || counts.size() > kMaxSymbolsTold) {
      fail(ErrorKind::bad_input, "malformed cubin: an attribute of symbol {} stands twice, or more than {} have it",
           symbol, kMaxSymbolsTold);
    }
  });
  return found;
}

// What a section .nv.info.SYMBOL says of that kernel. Its parameters stand in any order.
struct KernelAttributes {
  std::map<int, CubinParameter> parameters;
  std::optional<int> parameter_bytes, bank_bytes;  // of all; said twice
};

KernelAttributes read_kernel_attributes(std::string_view records) {
  KernelAttributes found;
  read_attributes(records, [&](std::uint8_t attribute, std::string_view bytes) {
    const CubinReader value(bytes);
    const auto set_once = [](std::optional<int>& bytes, int size) {
      if (std::exchange(bytes, size)) fail(ErrorKind::bad_input, "malformed cubin: a kernel's attribute stands twice");
    };
    if (attribute == kAttributeParameterBytes) {
      set_once(found.parameter_bytes, value.at<std::uint16_t>(0, "the size of the parameters"));
    } else if (attribute == kAttributeParameterBank) {
      set_once(found.bank_bytes, value.at<std::uint16_t>(6, "the size of the parameters' bank"));
    } else if (attribute == kAttributeParameter) {
      const int ordinal = value.at<std::uint16_t>(4, "a parameter's number");
      const CubinParameter parameter{
          .offset = value.at<std::uint16_t>(6, "a parameter's offset"),
          .bytes = static_cast<int>(value.at<std::uint32_t>(8, "a parameter's size") >> kParameterBytesShift)};
      if (ordinal >= kMaxParameters) {
        fail(ErrorKind::bad_input, "malformed cubin: a parameter is number {}, more than {}", ordinal, kMaxParameters);
      }
      if (!found.parameters.emplace(ordinal, parameter).second) {
        fail(ErrorKind::bad_input, "malformed cubin: two parameters are number {}", ordinal);
      }
    }
  });
  return found;
}

std::optional<int> value_of(const std::map<std::uint32_t, int>& values, std::uint32_t symbol) {
  const auto it = values.find(symbol);
  return it == values.end() ? std::nullopt : std::optional<int>(it->second);
}

// By the kernels' names.
struct KernelSections {
  std::map<std::string_view, KernelAttributes> attributes;
  std::map<std::string_view, std::uint64_t> shared_bytes;
};

struct SymbolTable {
  std::string_view symbols, names;
};

void add_kernel(const KernelSections& kernels, CubinFunction& function) {
  function.entry = true;
  if (const auto found = kernels.attributes.find(function.name); found != kernels.attributes.end()) {
    function.parameter_bytes = found->second.parameter_bytes.value_or(0);
    if (found->second.bank_bytes.value_or(function.parameter_bytes) != function.parameter_bytes) {
      fail(ErrorKind::bad_input, "malformed cubin: the kernel {} has {} bytes of parameters, and a bank of {}",
           printable(function.name), function.parameter_bytes, *found->second.bank_bytes);
    }
    for (const auto& [ordinal, parameter] : found->second.parameters) {
      if (ordinal != static_cast<int>(function.parameters.size())) {
        fail(ErrorKind::bad_input, "malformed cubin: the kernel {} has a parameter {}, and no parameter {}",
             printable(function.name), ordinal, function.parameters.size());
      }
      function.parameters.push_back(parameter);
    }
  }
  if (const auto found = kernels.shared_bytes.find(function.name); found != kernels.shared_bytes.end()) {
    function.shared_bytes = to_count(found->second);
  }
}

void read_symbols(const SymbolTable& table, const std::vector<Section>& sections, const Attributes& attributes,
                  const KernelSections& kernels, CubinInfo& info) {
  const CubinReader symbols(table.symbols);
  std::set<std::string> names;
  for (std::uint32_t i = 0; i < table.symbols.size() / sizeof(Elf64_Sym); ++i) {
    const auto symbol = symbols.at<Elf64_Sym>(i * sizeof(Elf64_Sym), "a symbol");
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF) continue;
    if (info.functions.size() == kMaxFunctions) {
      fail(ErrorKind::bad_input, "malformed cubin: it has more than {} functions", kMaxFunctions);
    }
    CubinFunction& function = info.functions.emplace_back();
    function.name = name_in(table.names, symbol.st_name, "the symbol name at");
    if (!names.insert(function.name).second) {
      fail(ErrorKind::bad_input, "malformed cubin: two functions are named {}", printable(function.name));
    }
    const bool own_code = symbol.st_shndx < sections.size() &&
                          sections[symbol.st_shndx].name == fmt::format("{}{}", kCode, function.name);
    function.registers = value_of(attributes.registers, i).value_or(-1);
    function.frame_bytes = value_of(attributes.frames, i).value_or(-1);
    if (function.registers < 0 && own_code) {
      const std::uint32_t registers = sections[symbol.st_shndx].header.sh_info >> kRegisterShift;
      if (registers > 0) function.registers = static_cast<int>(registers);
    }
    if ((symbol.st_other & kEntryFlag) == 0) continue;
    if (!own_code) {
      fail(ErrorKind::bad_input, "malformed cubin: the kernel {} is not in a section of its own",
           printable(function.name));
    }
    add_kernel(kernels, function);
  }
}

}  // namespace

const CubinFunction* CubinInfo::find(std::string_view symbol) const {
  for (const CubinFunction& function : functions) {
    if (function.name == symbol) return &function;
  }
  return nullptr;
}

std::string CubinInfo::entries() const {
  std::string names;
  std::size_t count = 0;
  for (const CubinFunction& function : functions) {
    if (!function.entry || ++count > kMaxEntriesTold) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", printable(function.name));
  }
  if (count > kMaxEntriesTold) names += fmt::format(" and {} more", count - kMaxEntriesTold);
  return names.empty() ? "none" : names;
}

CubinInfo read_cubin(std::string_view cubin) {
  const CubinReader reader(cubin);
  CubinInfo info;
  info.compute = read_compute(reader.at<Elf64_Ehdr>(0, "the ELF header"));
  const std::vector<Section> sections = read_sections(reader, reader.at<Elf64_Ehdr>(0, "the ELF header"));
  // The sections that are read are together no larger than the file, and so is what is read.
  std::uint64_t left = cubin.size();
  const auto content = [&](const Section& section, const char* what) {
    const std::string_view bytes = reader.range(section.header.sh_offset, section.header.sh_size, what);
    if (bytes.size() > left) fail(ErrorKind::bad_input, "malformed cubin: its sections are larger than it");
    left -= bytes.size();
    return bytes;
  };
  // What stands twice, or looks like another kind of section, could be read by the driver in another way than here.
  std::set<std::string_view> read;
  const auto check = [&](const Section& section, std::uint32_t type) {
    if (section.header.sh_type == type && read.insert(section.name).second) return;
    fail(ErrorKind::bad_input, "malformed cubin: the section {} stands twice, or is of type {}",
         printable(section.name), section.header.sh_type);
  };
  Attributes attributes;
  KernelSections kernels;
  for (const Section& section : sections) {
    if (section.name.starts_with(kCode)) {
      check(section, SHT_PROGBITS);
      info.code_bytes += static_cast<std::int64_t>(content(section, "a section of code").size());
    } else if (section.name == kInfo) {
      check(section, kSectionInfo);
      attributes = read_symbol_attributes(content(section, "the section .nv.info"));
    } else if (section.name.starts_with(kKernelInfo)) {
      check(section, kSectionInfo);
      const std::string_view symbol = section.name.substr(kKernelInfo.size());
      const std::uint32_t code = section.header.sh_info;
      if (code >= sections.size() || sections[code].name != fmt::format("{}{}", kCode, symbol)) {
        fail(ErrorKind::bad_input, "malformed cubin: the section {} is of other code", printable(section.name));
      }
      kernels.attributes[symbol] = read_kernel_attributes(content(section, "a kernel's section .nv.info"));
    } else if (section.name.starts_with(kShared)) {
      check(section, SHT_NOBITS);
      kernels.shared_bytes[section.name.substr(kShared.size())] = section.header.sh_size;
    }
  }
  for (const auto& [symbol, bytes] : attributes.frames) info.frame_bytes = std::max(info.frame_bytes, bytes);
  bool has_symbols = false;
  for (const Section& section : sections) {
    if (section.header.sh_type != SHT_SYMTAB) continue;
    if (std::exchange(has_symbols, true)) fail(ErrorKind::bad_input, "malformed cubin: it has two tables of symbols");
    if (section.header.sh_link >= sections.size()) {
      fail(ErrorKind::bad_input, "malformed cubin: the symbols' names are in section {} of {}", section.header.sh_link,
           sections.size());
    }
    const Elf64_Shdr& strings = sections[section.header.sh_link].header;
    const SymbolTable table{.symbols = content(section, "the symbols"),
                            .names = reader.range(strings.sh_offset, strings.sh_size, "the symbols' names")};
    read_symbols(table, sections, attributes, kernels, info);
  }
  return info;
}

}  // namespace burin

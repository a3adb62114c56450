#include "compiler/assemble/cubin_info.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <optional>

#include "ir/error.h"

namespace burin {
namespace {

constexpr std::uint16_t kMachineCuda = 190;         // EM_CUDA
constexpr std::uint32_t kSectionInfo = 0x70000000;  // SHT_CUDA_INFO
constexpr unsigned char kEntryFlag = 0x10;          // st_other: STO_CUDA_ENTRY
constexpr int kRegisterShift = 24;                  // older cubins keep the registers in the high byte of sh_info

// Formats and attributes of .nv.info records. Only records of format `sized` have more than four bytes.
constexpr std::uint8_t kFormatNone = 1, kFormatByte = 2, kFormatHalf = 3, kFormatSized = 4;
constexpr std::uint8_t kAttributeFrameSize = 0x11, kAttributeRegisters = 0x2f;

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

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
  const std::size_t end = offset < table.size() ? table.find('\0', offset) : std::string_view::npos;
  if (end == std::string_view::npos) {
    fail(ErrorKind::bad_input, "malformed cubin: {} {} lies outside its string table of {} bytes", what, offset,
         table.size());
  }
  return table.substr(offset, end - offset);
}

struct Section {
  Elf64_Shdr header;
  std::string_view name;
};

std::vector<Section> read_sections(const Reader& reader, const Elf64_Ehdr& header) {
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
  if (count > std::numeric_limits<std::uint32_t>::max()) {
    fail(ErrorKind::bad_input, "malformed cubin: {} sections", count);
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

int to_count(std::uint32_t value) {
  return static_cast<int>(std::min<std::uint32_t>(value, std::numeric_limits<int>::max()));
}

// symbol index -> value, for the two attributes of interest
struct Attributes {
  std::map<std::uint32_t, int> registers, frames;
};

Attributes read_attributes(std::string_view records) {
  Attributes found;
  const Reader section(records);
  for (std::uint64_t at = 0; at < records.size();) {
    const auto format = section.at<std::uint8_t>(at, "an attribute");
    const auto attribute = section.at<std::uint8_t>(at + 1, "an attribute");
    const auto size = section.at<std::uint16_t>(at + 2, "an attribute");
    at += 4;
    if (format == kFormatNone || format == kFormatByte || format == kFormatHalf) continue;
    if (format != kFormatSized) fail(ErrorKind::bad_input, "malformed cubin: attribute of unknown format {}", format);
    section.range(at, size, "the value of an attribute");
    if (size >= 8 && (attribute == kAttributeRegisters || attribute == kAttributeFrameSize)) {
      const auto symbol = section.at<std::uint32_t>(at, "an attribute's symbol");
      const int value = to_count(section.at<std::uint32_t>(at + 4, "an attribute's value"));
      (attribute == kAttributeRegisters ? found.registers : found.frames)[symbol] = value;
    }
    at += size;
  }
  return found;
}

std::optional<int> value_of(const std::map<std::uint32_t, int>& values, std::uint32_t symbol) {
  const auto it = values.find(symbol);
  return it == values.end() ? std::nullopt : std::optional<int>(it->second);
}

void read_symbols(const Reader& reader, const std::vector<Section>& sections, const Section& table,
                  const Attributes& attributes, CubinInfo& info) {
  if (table.header.sh_link >= sections.size()) {
    fail(ErrorKind::bad_input, "malformed cubin: the symbols' names are in section {} of {}", table.header.sh_link,
         sections.size());
  }
  const Elf64_Shdr& strings = sections[table.header.sh_link].header;
  const std::string_view names = reader.range(strings.sh_offset, strings.sh_size, "the symbols' names");
  const std::string_view symbols = reader.range(table.header.sh_offset, table.header.sh_size, "the symbols");
  const Reader symbol_reader(symbols);
  for (std::uint32_t i = 0; i < symbols.size() / sizeof(Elf64_Sym); ++i) {
    const auto symbol = symbol_reader.at<Elf64_Sym>(i * sizeof(Elf64_Sym), "a symbol");
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF) continue;
    CubinFunction function;
    function.name = name_in(names, symbol.st_name, "the symbol name at");
    function.entry = (symbol.st_other & kEntryFlag) != 0;
    function.registers = value_of(attributes.registers, i).value_or(-1);
    function.frame_bytes = value_of(attributes.frames, i).value_or(-1);
    if (function.registers < 0 && symbol.st_shndx < sections.size()) {
      const std::uint32_t registers = sections[symbol.st_shndx].header.sh_info >> kRegisterShift;
      if (registers > 0 && sections[symbol.st_shndx].name == ".text." + function.name) {
        function.registers = static_cast<int>(registers);
      }
    }
    info.functions.push_back(std::move(function));
  }
}

}  // namespace

const CubinFunction* CubinInfo::find(std::string_view symbol) const {
  for (const CubinFunction& function : functions) {
    if (function.name == symbol) return &function;
  }
  return nullptr;
}

CubinInfo read_cubin(std::string_view cubin) {
  const Reader reader(cubin);
  const auto header = reader.at<Elf64_Ehdr>(0, "the ELF header");
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) fail(ErrorKind::bad_input, "not a cubin: not an ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    fail(ErrorKind::bad_input, "not a cubin: not a 64-bit little-endian ELF file");
  }
  if (header.e_machine != kMachineCuda) {
    fail(ErrorKind::bad_input, "not a cubin: an ELF file for machine {} instead of {}", header.e_machine, kMachineCuda);
  }

  const std::vector<Section> sections = read_sections(reader, header);
  CubinInfo info;
  Attributes attributes;
  for (const Section& section : sections) {
    if (section.name.starts_with(".text.") && section.header.sh_type == SHT_PROGBITS) {
      reader.range(section.header.sh_offset, section.header.sh_size, "a section of code");
      info.code_bytes += static_cast<std::int64_t>(section.header.sh_size);
    } else if (section.name == ".nv.info" && section.header.sh_type == kSectionInfo) {
      attributes =
          read_attributes(reader.range(section.header.sh_offset, section.header.sh_size, "the section .nv.info"));
    }
  }
  for (const auto& [symbol, bytes] : attributes.frames) info.frame_bytes = std::max(info.frame_bytes, bytes);
  for (const Section& section : sections) {
    if (section.header.sh_type == SHT_SYMTAB) read_symbols(reader, sections, section, attributes, info);
  }
  return info;
}

}  // namespace burin

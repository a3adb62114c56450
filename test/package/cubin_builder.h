// Builds small cubins byte by byte, so that the reader is tested with files that no assembler writes.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace burin_test {

struct CubinBuilder {
  struct Function {
    std::string name;
    std::uint32_t registers;
    std::uint32_t frame;
    bool entry;
    std::string code;
    std::vector<std::uint32_t> parameters = {};  // bytes of each; of an entry
    std::uint64_t static_shared = 0;
  };
  std::vector<Function> functions;
  std::uint32_t compute = 90;
  bool old_flags = false;  // as assemblers of CUDA 12 write them for the older architectures
  bool with_attributes = true;
  bool registers_in_section = false;               // as older assemblers did
  std::vector<std::uint32_t> more_registers = {};  // further records of registers: the symbols that they are of

  template <typename T>
  static void append(std::string& bytes, const T& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }

  // In the order in which assemblers write them.
  static std::string parameter_records(const std::vector<std::uint32_t>& parameters) {
    std::string records;
    std::uint16_t offset = 0;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      constexpr std::uint32_t kBank = 0x210;  // where the first one lies, on sm_90
      const std::uint32_t alignment = parameters[i] < 64 ? parameters[i] : 64;
      offset = static_cast<std::uint16_t>((kBank + offset + alignment - 1) / alignment * alignment - kBank);
      std::string record("\x04\x17\x0c\x00\0\0\0\0", 8);
      append(record, static_cast<std::uint16_t>(i));
      append(record, offset);
      append(record, parameters[i] << 18);
      records = record + records;
      offset = static_cast<std::uint16_t>(offset + parameters[i]);
    }
    records += "\x03\x19";
    append(records, offset);
    return records;
  }

  std::string build() const {
    std::string names("\0.shstrtab\0.symtab\0.nv.info\0", 28);
    std::string symbol_names(1, '\0');
    std::string symbols(sizeof(Elf64_Sym), '\0');
    std::string attributes;
    // sections: 0 null, 1 names, 2 symbols, 3 attributes, 4.. code
    std::vector<Elf64_Shdr> headers(4);
    std::string bytes(sizeof(Elf64_Ehdr), '\0');
    const auto place = [&](Elf64_Shdr& header, const std::string& content) {
      header.sh_offset = bytes.size();
      header.sh_size = content.size();
      bytes += content;
    };
    for (std::size_t i = 0; i < functions.size(); ++i) {
      const Function& function = functions[i];
      Elf64_Shdr code{};
      code.sh_type = SHT_PROGBITS;
      code.sh_name = static_cast<Elf64_Word>(names.size());
      if (registers_in_section) code.sh_info = function.registers << 24;
      names += ".text." + function.name + '\0';
      place(code, function.code);
      headers.push_back(code);

      Elf64_Sym symbol{};
      symbol.st_name = static_cast<Elf64_Word>(symbol_names.size());
      symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
      symbol.st_other = function.entry ? 0x10 : 0;
      symbol.st_shndx = static_cast<Elf64_Half>(4 + i);
      symbol_names += function.name + '\0';
      append(symbols, symbol);

      const std::uint32_t index = static_cast<std::uint32_t>(i + 1);
      const auto record = [&](std::uint8_t attribute, std::uint32_t value) {
        append(attributes, std::uint8_t{4});
        append(attributes, attribute);
        append(attributes, std::uint16_t{8});
        append(attributes, index);
        append(attributes, value);
      };
      if (with_attributes) {
        attributes += std::string("\x03\x37\x7b\x00", 4);  // a record without a value of its own
        record(0x2f, function.registers);
        record(0x11, function.frame);
      }
    }
    for (const std::uint32_t symbol : more_registers) {
      attributes += std::string("\x04\x2f\x08\x00", 4);
      append(attributes, symbol);
      append(attributes, std::uint32_t{8});
    }
    const auto add = [&](const std::string& name, Elf64_Word type, const std::string& content) -> Elf64_Shdr& {
      Elf64_Shdr& header = headers.emplace_back();
      header.sh_type = type;
      header.sh_name = static_cast<Elf64_Word>(names.size());
      names += name + '\0';
      place(header, content);
      return header;
    };
    for (std::size_t i = 0; i < functions.size(); ++i) {
      const Function& function = functions[i];
      if (!function.entry) continue;
      add(".nv.info." + function.name, 0x70000000, parameter_records(function.parameters)).sh_info =
          static_cast<Elf64_Word>(4 + i);
      if (function.static_shared > 0) {
        add(".nv.shared." + function.name, SHT_NOBITS, "").sh_size = function.static_shared;
      }
    }
    headers[1].sh_type = SHT_STRTAB;
    headers[1].sh_name = 1;
    headers[2].sh_type = SHT_SYMTAB;
    headers[2].sh_name = 11;
    headers[2].sh_link = static_cast<Elf64_Word>(headers.size());
    headers[3].sh_type = 0x70000000;
    headers[3].sh_name = 19;
    Elf64_Shdr strings{};
    strings.sh_type = SHT_STRTAB;
    place(strings, symbol_names);
    headers.push_back(strings);
    place(headers[1], names);
    place(headers[2], symbols);
    place(headers[3], attributes);

    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_machine = 190;
    header.e_ident[EI_ABIVERSION] = old_flags ? 7 : 8;
    header.e_flags = old_flags ? compute | compute << 16 : compute << 8;
    header.e_shoff = bytes.size();
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<Elf64_Half>(headers.size());
    header.e_shstrndx = 1;
    for (const Elf64_Shdr& section : headers) append(bytes, section);
    std::memcpy(bytes.data(), &header, sizeof(header));
    return bytes;
  }
};

}  // namespace burin_test

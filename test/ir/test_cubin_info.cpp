#include "ir/cubin_info.h"

#include <random>

#include "ir/error.h"
#include "test/catch.h"
#include "test/package/cubin_builder.h"
#include "test/scratch_folder.h"
#include "test/thrown.h"

using burin::CubinInfo;
using burin::CubinParameter;
using burin::read_cubin;
using burin_test::Contains;
using burin_test::CubinBuilder;

namespace {

CubinBuilder two_functions() {
  CubinBuilder builder;
  builder.functions = {{"slice0", 64, 24, false, std::string(160, 'Z')},
                       {"k", 72, 8, true, std::string(320, 'Z'), {8, 8, 4}, 1024 + 64}};
  return builder;
}

template <typename Field>
std::string with_header(std::string cubin, Field Elf64_Ehdr::* field, Field value) {
  Elf64_Ehdr header;
  std::memcpy(&header, cubin.data(), sizeof(header));
  header.*field = value;
  std::memcpy(cubin.data(), &header, sizeof(header));
  return cubin;
}

template <typename Field>
std::string with_section(std::string cubin, std::size_t index, Field Elf64_Shdr::* field, Field value) {
  Elf64_Ehdr header;
  std::memcpy(&header, cubin.data(), sizeof(header));
  Elf64_Shdr section;
  char* at = cubin.data() + header.e_shoff + index * sizeof(section);
  std::memcpy(&section, at, sizeof(section));
  section.*field = value;
  std::memcpy(at, &section, sizeof(section));
  return cubin;
}

// Reads or refuses; anything else (a crash, another exception) fails the test.
bool reads(const std::string& cubin) {
  try {
    read_cubin(cubin);
    return true;
  } catch (const burin::Error& error) {
    REQUIRE(error.kind() == burin::ErrorKind::bad_input);
    return false;
  }
}

}  // namespace

TEST_CASE("cubin_info: registers, frames and code") {
  const CubinInfo info = read_cubin(two_functions().build());
  REQUIRE(info.functions.size() == 2);
  REQUIRE(info.find("k") != nullptr);
  CHECK(info.find("k")->registers == 72);
  CHECK(info.find("k")->frame_bytes == 8);
  CHECK(info.find("k")->entry);
  CHECK(info.find("slice0")->registers == 64);
  CHECK_FALSE(info.find("slice0")->entry);
  CHECK(info.find("slice1") == nullptr);
  CHECK(info.code_bytes == 480);
  CHECK(info.frame_bytes == 24);
  CHECK(info.compute == 90);
  CHECK(info.find("k")->parameters == std::vector<CubinParameter>{{0, 8}, {8, 8}, {16, 4}});
  CHECK(info.find("k")->parameter_bytes == 20);
  CHECK(info.find("k")->shared_bytes == 1024 + 64);
  CHECK(info.find("slice0")->parameters.empty());
  CHECK(info.entries() == "k");
}

TEST_CASE("cubin_info: what assemblers of CUDA 12 and 13 write") {
  for (const auto& [name, compute, shared] : {std::tuple{"cuda12", 80, 512}, {"cuda13", 90, 1024 + 512}}) {
    INFO(name);
    const CubinInfo info = read_cubin(burin_test::read_file(std::string(BURIN_CUBIN_SEEDS "/") + name + ".cubin"));
    CHECK(info.compute == compute);
    REQUIRE(info.functions.size() == 1);
    CHECK(info.functions[0].name == "burin_k");
    CHECK(info.functions[0].entry);
    CHECK(info.functions[0].registers > 0);
    CHECK(info.functions[0].frame_bytes == 0);
    CHECK(info.functions[0].parameters == std::vector<CubinParameter>{{0, 8}, {8, 8}, {16, 4}});
    CHECK(info.functions[0].parameter_bytes == 20);
    CHECK(info.functions[0].shared_bytes == shared);
  }
}

TEST_CASE("cubin_info: older assemblers keep the architecture in the lowest byte") {
  CubinBuilder builder = two_functions();
  builder.compute = 86;
  builder.old_flags = true;
  CHECK(read_cubin(builder.build()).compute == 86);
}

TEST_CASE("cubin_info: older cubins keep the registers in the section header") {
  CubinBuilder builder = two_functions();
  builder.with_attributes = false;
  builder.registers_in_section = true;
  const CubinInfo info = read_cubin(builder.build());
  REQUIRE(info.find("k") != nullptr);
  CHECK(info.find("k")->registers == 72);
  CHECK(info.frame_bytes == -1);
}

TEST_CASE("cubin_info: what the cubin does not say is -1") {
  CubinBuilder builder = two_functions();
  builder.with_attributes = false;
  const CubinInfo info = read_cubin(builder.build());
  REQUIRE(info.find("k") != nullptr);
  CHECK(info.find("k")->registers == -1);
  CHECK(info.find("k")->frame_bytes == -1);
}

TEST_CASE("cubin_info: no functions") {
  const CubinInfo info = read_cubin(CubinBuilder{}.build());
  CHECK(info.functions.empty());
  CHECK(info.code_bytes == 0);
}

TEST_CASE("cubin_info: not a cubin") {
  const std::string good = two_functions().build();
  CHECK_THROWS_WITH(read_cubin(""), Contains("the ELF header"));
  CHECK_THROWS_WITH(read_cubin(std::string(200, 'x')), Contains("not an ELF file"));
  CHECK_THROWS_WITH(read_cubin(with_header(good, &Elf64_Ehdr::e_machine, Elf64_Half{62})), Contains("machine 62"));
  std::string narrow = good;
  narrow[EI_CLASS] = ELFCLASS32;
  CHECK_THROWS_WITH(read_cubin(narrow), Contains("64-bit"));
}

TEST_CASE("cubin_info: offsets and sizes beyond the file") {
  const std::string good = two_functions().build();
  constexpr std::uint64_t kHuge = ~std::uint64_t{0} - 8;
  CHECK_THROWS_WITH(read_cubin(with_header(good, &Elf64_Ehdr::e_shoff, Elf64_Off{kHuge})),
                    Contains("section header 0"));
  CHECK_THROWS_WITH(read_cubin(with_header(good, &Elf64_Ehdr::e_shnum, Elf64_Half{5000})),
                    Contains("table of sections"));
  CHECK_THROWS_WITH(read_cubin(with_header(good, &Elf64_Ehdr::e_shentsize, Elf64_Half{8})), Contains("8 bytes"));
  CHECK_THROWS_WITH(read_cubin(with_header(good, &Elf64_Ehdr::e_shstrndx, Elf64_Half{99})), Contains("section 99"));
  for (std::size_t section = 1; section <= 6; ++section) {
    INFO("section " << section);
    CHECK_FALSE(reads(with_section(good, section, &Elf64_Shdr::sh_offset, Elf64_Off{kHuge})));
    CHECK_FALSE(reads(with_section(good, section, &Elf64_Shdr::sh_size, Elf64_Xword{kHuge})));
  }
  CHECK_THROWS_WITH(read_cubin(with_section(good, 4, &Elf64_Shdr::sh_name, Elf64_Word{70000})), Contains("name"));
  CHECK_THROWS_WITH(read_cubin(with_section(good, 2, &Elf64_Shdr::sh_link, Elf64_Word{70000})), Contains("70000"));
}

TEST_CASE("cubin_info: what would cost more than the file is worth is refused") {
  CubinBuilder builder;
  for (int i = 0; i <= 1000; ++i) builder.functions.push_back({"f" + std::to_string(i), 8, 0, false, ""});
  CHECK_THROWS_WITH(read_cubin(builder.build()), Contains("more than 1000 functions"));
  builder.functions.assign(1, {std::string(1025, 'f'), 8, 0, true, ""});
  CHECK_THROWS_WITH(read_cubin(builder.build()), Contains("longer than 1024 bytes"));
  CubinBuilder symbols = two_functions();
  for (std::uint32_t i = 0; i <= 10'000; ++i) symbols.more_registers.push_back(100 + i);
  CHECK_THROWS_WITH(read_cubin(symbols.build()), Contains("or more than 10000 have it"));
  // Two sections that are the whole file.
  const std::string good = two_functions().build();
  std::string shared = good;
  for (const std::size_t code : {4, 5}) {
    shared = with_section(shared, code, &Elf64_Shdr::sh_offset, Elf64_Off{0});
    shared = with_section(shared, code, &Elf64_Shdr::sh_size, Elf64_Xword{good.size()});
  }
  CHECK_THROWS_WITH(read_cubin(shared), Contains("larger than it"));
}

TEST_CASE("cubin_info: what could be read in two ways is refused") {
  const auto fault_of = [](const CubinBuilder& builder) {
    return burin_test::error_of([&] { read_cubin(builder.build()); });
  };
  CubinBuilder builder = two_functions();
  builder.functions.push_back(builder.functions[1]);
  CHECK_THAT(fault_of(builder), Contains("the section .text.k stands twice"));
  builder.functions[2] = {"j", 8, 0, false, ""};
  std::string twice = builder.build();
  const std::size_t names = twice.find(std::string("k\0j", 3));
  REQUIRE(names != std::string::npos);
  twice[names + 2] = 'k';
  CHECK_THROWS_WITH(read_cubin(twice), Contains("two functions are named k"));
  builder = two_functions();
  builder.more_registers = {1};
  CHECK_THAT(fault_of(builder), Contains("an attribute of symbol 1 stands twice"));
  builder = two_functions();
  builder.functions[1].parameters.assign(65, 4);
  CHECK_THAT(fault_of(builder), Contains("a parameter is number 64"));
  // Sections: 4 and 5 are code, 6 what is said of k, 7 its shared memory.
  const std::string good = two_functions().build();
  CHECK_THROWS_WITH(read_cubin(with_section(good, 6, &Elf64_Shdr::sh_info, Elf64_Word{4})), Contains("of other code"));
  CHECK_THROWS_WITH(read_cubin(with_section(good, 6, &Elf64_Shdr::sh_type, Elf64_Word{SHT_PROGBITS})),
                    Contains("the section .nv.info.k stands twice, or is of type 1"));
  CHECK_THROWS_WITH(read_cubin(with_section(good, 7, &Elf64_Shdr::sh_type, Elf64_Word{SHT_PROGBITS})),
                    Contains("the section .nv.shared.k stands twice, or is of type 1"));
}

TEST_CASE("cubin_info: parameters that stand twice or are missing") {
  CubinBuilder builder = two_functions();
  const std::string good = builder.build();
  // The records of `k` begin with its last parameter, whose number is in their bytes 8 and 9.
  Elf64_Ehdr header;
  std::memcpy(&header, good.data(), sizeof(header));
  Elf64_Shdr records;
  std::memcpy(&records, good.data() + header.e_shoff + 6 * sizeof(records), sizeof(records));
  std::string changed = good;
  REQUIRE(changed.at(records.sh_offset + 8) == 2);
  changed[records.sh_offset + 8] = 1;
  CHECK_THROWS_WITH(read_cubin(changed), Contains("two parameters are number 1"));
  changed[records.sh_offset + 8] = 3;
  CHECK_THROWS_WITH(read_cubin(changed), Contains("a parameter 3, and no parameter 2"));
}

TEST_CASE("cubin_info: every truncation is refused") {
  const std::string good = two_functions().build();
  for (std::size_t size = 0; size < good.size(); ++size) {
    INFO("size " << size);
    CHECK_FALSE(reads(good.substr(0, size)));
  }
}

TEST_CASE("cubin_info: changed bytes never break the reader") {
  const std::string good = two_functions().build();
  constexpr unsigned kSeed = 7;
  std::mt19937 random(kSeed);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string changed = good;
    for (int flips = 0; flips < 3; ++flips) changed[random() % changed.size()] = static_cast<char>(random());
    refused += reads(changed) ? 0 : 1;
  }
  CHECK(refused > 0);
}

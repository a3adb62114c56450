#include "compiler/host/attribute_scan.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/Bitcode/LLVMBitCodes.h>
#include <llvm/Bitstream/BitCodeEnums.h>
#include <llvm/Bitstream/BitstreamReader.h>
#include <llvm/IR/Attributes.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace burin {
namespace {

using llvm::BitstreamCursor;
using llvm::BitstreamEntry;
using llvm::Error;

constexpr std::uint64_t kMaxParameters = 256;
constexpr unsigned kMagicBytes = 4;
constexpr llvm::StringLiteral kMagic("BC\xC0\xDE");

Error damaged(const char* what) { return llvm::createStringError(llvm::inconvertibleErrorCode(), what); }

// Calls `block` for each block inside the one that `cursor` has entered, and `record` for each record; both must
// consume.
template <typename OnBlock, typename OnRecord>
Error walk(BitstreamCursor& cursor, const OnBlock& block, const OnRecord& record) {
  while (true) {
    llvm::Expected<BitstreamEntry> entry = cursor.advance();
    if (!entry) return entry.takeError();
    switch (entry->Kind) {
      case BitstreamEntry::Error:
        return damaged("a block is damaged");
      case BitstreamEntry::EndBlock:
        return Error::success();
      case BitstreamEntry::SubBlock:
        if (Error error = block(entry->ID)) return error;
        break;
      case BitstreamEntry::Record:
        if (Error error = record(entry->ID)) return error;
        break;
    }
  }
}

Error scan_groups(BitstreamCursor& cursor) {
  if (Error error = cursor.EnterSubBlock(llvm::bitc::PARAMATTR_GROUP_BLOCK_ID)) return error;
  llvm::SmallVector<std::uint64_t, 64> record;
  return walk(
      cursor, [&](unsigned) { return cursor.SkipBlock(); },
      [&](unsigned abbreviation) -> Error {
        record.clear();
        auto code = cursor.readRecord(abbreviation, record);
        if (!code) return code.takeError();
        if (*code != llvm::bitc::PARAMATTR_GRP_CODE_ENTRY) return Error::success();
        constexpr std::size_t kPosition = 1;  // group, position, attributes ..
        if (record.size() <= kPosition) return damaged("a group of attributes is damaged");
        const std::uint64_t position = record[kPosition];
        if (position > kMaxParameters && position != llvm::AttributeList::FunctionIndex) {
          return damaged("attributes of a parameter that is not there");
        }
        return Error::success();
      });
}

Error scan_module(BitstreamCursor& cursor) {
  if (Error error = cursor.EnterSubBlock(llvm::bitc::MODULE_BLOCK_ID)) return error;
  std::optional<llvm::BitstreamBlockInfo> abbreviations;  // of the blocks; the cursor points to it
  Error error = walk(
      cursor,
      [&](unsigned id) -> Error {
        if (id == llvm::bitc::PARAMATTR_GROUP_BLOCK_ID) return scan_groups(cursor);
        if (id != llvm::bitc::BLOCKINFO_BLOCK_ID) return cursor.SkipBlock();
        auto info = cursor.ReadBlockInfoBlock();
        if (!info) return info.takeError();
        if (!*info) return damaged("a block is damaged");
        abbreviations = std::move(**info);
        cursor.setBlockInfo(&*abbreviations);
        return Error::success();
      },
      [&](unsigned abbreviation) { return cursor.skipRecord(abbreviation).takeError(); });
  cursor.setBlockInfo(nullptr);
  return error;
}

}  // namespace

Error scan_attributes(llvm::StringRef bitcode) {
  if (!bitcode.starts_with(kMagic) || bitcode.size() % sizeof(std::uint32_t) != 0) {
    return damaged("it does not begin as bitcode does, or is cut off");
  }
  BitstreamCursor cursor(bitcode);
  if (Error error = cursor.JumpToBit(kMagicBytes * 8)) return error;
  while (!cursor.AtEndOfStream()) {
    llvm::Expected<BitstreamEntry> entry = cursor.advance();
    if (!entry) return entry.takeError();
    if (entry->Kind != BitstreamEntry::SubBlock) return damaged("a block is damaged");
    if (Error error = entry->ID == llvm::bitc::MODULE_BLOCK_ID ? scan_module(cursor) : cursor.SkipBlock()) return error;
  }
  return Error::success();
}

}  // namespace burin

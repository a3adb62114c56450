#include "compiler/import/npy.h"

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>

#include "compiler/import/faults.h"
#include "compiler/import/names.h"
#include "ir/text.h"

namespace burin {
namespace {

// The header is a Python dict literal with three keys. This reads exactly what such a literal may look like: strings in
// either quotes, True and False, tuples of whole numbers, and commas in all the places where Python allows them.
class DictReader {
 public:
  DictReader(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  struct Fields {
    std::optional<std::string> descr;
    std::optional<bool> fortran_order;
    std::optional<std::vector<std::int64_t>> shape;
  };

  Fields read() {
    Fields fields;
    expect('{');
    while (!take('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr" && !fields.descr) {
        fields.descr = descr();
      } else if (key == "fortran_order" && !fields.fortran_order) {
        fields.fortran_order = boolean();
      } else if (key == "shape" && !fields.shape) {
        fields.shape = tuple();
      } else {
        fault(fmt::format("the key {} is unknown or appears twice", in_quotes(key)));
      }
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (position_ != text_.size()) fault("text after the closing brace");
    return fields;
  }

 private:
  [[noreturn]] void fault(const std::string& what) const {
    bad_input(where_, ".npy header: {} (at byte {} of {})", what, position_, in_quotes(text_));
  }

  void skip_spaces() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n' ||
                                        text_[position_] == '\t' || text_[position_] == '\r')) {
      ++position_;
    }
  }

  bool take(char wanted) {
    skip_spaces();
    if (position_ == text_.size() || text_[position_] != wanted) return false;
    ++position_;
    return true;
  }

  void expect(char wanted) {
    if (!take(wanted)) fault(fmt::format("'{}' expected", wanted));
  }

  bool take_word(std::string_view word) {
    skip_spaces();
    if (!text_.substr(position_).starts_with(word)) return false;
    position_ += word.size();
    return true;
  }

  std::string string() {
    skip_spaces();
    const char quote = position_ < text_.size() ? text_[position_] : '\0';
    if (quote != '\'' && quote != '"') fault("a string expected");
    const auto end = text_.find(quote, position_ + 1);
    if (end == text_.npos) fault("a string that does not end");
    std::string value(text_.substr(position_ + 1, end - position_ - 1));
    if (value.find('\\') != value.npos) fault("an escape sequence");
    position_ = end + 1;
    return value;
  }

  std::string descr() {
    skip_spaces();
    if (position_ < text_.size() && text_[position_] == '[') fault("a structured type; burin reads plain arrays only");
    return string();
  }

  bool boolean() {
    if (take_word("True")) return true;
    if (!take_word("False")) fault("True or False expected");
    return false;
  }

  std::int64_t extent() {
    skip_spaces();
    std::int64_t value = 0;
    const char* begin = text_.data() + position_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) fault("an extent of the shape is too large");
    if (error != std::errc()) fault("a whole number expected in the shape");
    if (value < 0) fault("a negative extent in the shape");
    position_ += static_cast<std::size_t>(end - begin);
    take_word("L");  // Python 2 wrote long integers so
    return value;
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> values;
    expect('(');
    while (!take(')')) {
      if (values.size() == kMaxNpyRank) fault(fmt::format("more than {} dimensions", kMaxNpyRank));
      values.push_back(extent());
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }

  std::string_view text_;
  const std::string& where_;
  std::size_t position_ = 0;
};

struct NpyTypeRow {
  std::string_view code;  // without the byte order
  StoredType type;
  int bytes;
};
constexpr NpyTypeRow kNpyTypes[] = {
    {"f2", StoredType::f16, 2},     {"f4", StoredType::f32, 4},     {"f8", StoredType::f64, 8},
    {"b1", StoredType::boolean, 1}, {"i1", StoredType::i8, 1},      {"u1", StoredType::u8, 1},
    {"i2", StoredType::i16, 2},     {"u2", StoredType::u16, 2},     {"i4", StoredType::i32, 4},
    {"u4", StoredType::u32, 4},     {"i8", StoredType::i64, 8},     {"u8", StoredType::u64, 8},
    {"c8", StoredType::other, 8},   {"c16", StoredType::other, 16}, {"f16", StoredType::other, 16},
};

// '<f4', '>f8', '|b1', '=f2', '<U12'
void set_type(const std::string& descr, NpyHeader& header, const std::string& where) {
  WeightsTensor& tensor = header.tensor;
  tensor.type_name = descr;
  const std::string_view code = std::string_view(descr).substr(descr.empty() ? 0 : 1);
  const bool known_order = !descr.empty() && std::string_view("<>|=").find(descr[0]) != std::string_view::npos;
  if (known_order) {
    tensor.big_endian = descr[0] == '>';
    for (const NpyTypeRow& row : kNpyTypes) {
      if (row.code != code) continue;
      tensor.type = row.type;
      tensor.element_bytes = row.bytes;
      return;
    }
    if (code.starts_with('U') || code.starts_with('S')) {
      const auto characters = parse_number<int>(code.substr(1));
      constexpr int kMaxCharacters = 1 << 28;
      if (characters && *characters >= 0 && *characters <= kMaxCharacters) {
        tensor.type = StoredType::other;
        tensor.element_bytes = *characters * (code[0] == 'U' ? 4 : 1);
        header.text = true;
        return;
      }
    }
  }
  bad_input(where, ".npy header: the type is {}; burin reads float arrays ('<f2', '<f4', '<f8')", in_quotes(descr));
}

void append_utf8(std::string& text, std::uint32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0U | code >> 6U);
    text += static_cast<char>(0x80U | (code & 0x3FU));
  } else if (code < 0x10000) {
    text += static_cast<char>(0xE0U | code >> 12U);
    text += static_cast<char>(0x80U | (code >> 6U & 0x3FU));
    text += static_cast<char>(0x80U | (code & 0x3FU));
  } else {
    text += static_cast<char>(0xF0U | (code >> 18U & 0x07U));
    text += static_cast<char>(0x80U | (code >> 12U & 0x3FU));
    text += static_cast<char>(0x80U | (code >> 6U & 0x3FU));
    text += static_cast<char>(0x80U | (code & 0x3FU));
  }
}

}  // namespace

NpyHeader parse_npy_header(std::string_view bytes, const std::string& where) {
  constexpr std::size_t kVersionEnd = 8;  // magic, major, minor
  if (!bytes.starts_with(kNpyMagic)) bad_input(where, "does not start like a .npy array");
  if (bytes.size() < kVersionEnd) bad_input(where, ".npy header is cut off");
  const int major = static_cast<unsigned char>(bytes[6]);
  const int minor = static_cast<unsigned char>(bytes[7]);
  if (major < 1 || major > 3) {
    bad_input(where, ".npy format version {}.{}; burin reads versions 1, 2 and 3", major, minor);
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  if (bytes.size() < kVersionEnd + length_bytes) bad_input(where, ".npy header is cut off");
  std::size_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;)
    length = length << 8U | static_cast<unsigned char>(bytes[kVersionEnd + i]);
  if (length > kMaxNpyHeaderBytes) {
    bad_input(where, ".npy header claims {} bytes; more than {} are not read", length, kMaxNpyHeaderBytes);
  }
  NpyHeader header;
  header.data_offset = kVersionEnd + length_bytes + length;
  if (header.data_offset > bytes.size()) {
    bad_input(where, ".npy header claims {} bytes, but only {} follow", length,
              bytes.size() - kVersionEnd - length_bytes);
  }
  const auto fields = DictReader(bytes.substr(kVersionEnd + length_bytes, length), where).read();
  if (!fields.descr || !fields.fortran_order || !fields.shape) {
    bad_input(where, ".npy header lacks {}",
              !fields.descr           ? "'descr'"
              : !fields.fortran_order ? "'fortran_order'"
                                      : "'shape'");
  }
  set_type(*fields.descr, header, where);
  header.tensor.fortran = *fields.fortran_order;
  header.tensor.shape = *fields.shape;
  const auto elements = checked_elements(header.tensor.shape);
  std::int64_t data_bytes = 0;
  if (!elements || __builtin_mul_overflow(*elements, std::int64_t{header.tensor.element_bytes}, &data_bytes) ||
      data_bytes > std::numeric_limits<std::int64_t>::max() / 2) {
    bad_input(where, "the shape {} is larger than memory can be", extents_text(header.tensor.shape));
  }
  header.data_bytes = static_cast<std::size_t>(data_bytes);
  header.tensor.file = where;
  return header;
}

WeightsTensor parse_npy(std::string_view bytes, const std::string& where, const std::string& name) {
  NpyHeader header = parse_npy_header(bytes, where);
  const std::size_t present = bytes.size() - header.data_offset;
  if (present != header.data_bytes) {
    bad_input(where, "the shape {} of {} needs {} bytes, but {} follow the header", extents_text(header.tensor.shape),
              in_quotes(header.tensor.type_name), header.data_bytes, present);
  }
  header.tensor.name = name;
  header.tensor.bytes = bytes.substr(header.data_offset);
  return header.tensor;
}

std::string npy_string(const NpyHeader& header, std::string_view data, const std::string& where) {
  const WeightsTensor& tensor = header.tensor;
  if (!header.text || tensor.elements() != 1) bad_input(where, "is not one string");
  std::string text;
  if (tensor.type_name[1] == 'S') {
    text = data.substr(0, header.data_bytes);
  } else {
    for (std::size_t i = 0; i + 4 <= header.data_bytes; i += 4) {
      std::uint32_t code = 0;
      for (std::size_t j = 0; j < 4; ++j) {
        code = code << 8U | static_cast<unsigned char>(data[i + (tensor.big_endian ? j : 3 - j)]);
      }
      if (code > 0x10FFFF) bad_input(where, "holds a character beyond Unicode");
      append_utf8(text, code);
    }
  }
  text.erase(text.find_last_not_of('\0') + 1);  // NumPy fills up with zeros
  return text;
}

}  // namespace burin

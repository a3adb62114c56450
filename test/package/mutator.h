// Files that were changed at random.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace burin_test {

// Places of numbers, as (begin, end).
inline std::vector<std::pair<std::size_t, std::size_t>> numbers_of(const std::string& text) {
  std::vector<std::pair<std::size_t, std::size_t>> numbers;
  const auto is_digit = [&](std::size_t i) { return text[i] >= '0' && text[i] <= '9'; };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_digit(i)) continue;
    const std::size_t begin = i;
    while (i < text.size() && is_digit(i)) ++i;
    numbers.emplace_back(begin, i);
  }
  return numbers;
}

// Changes one number, one byte or one line of a text, or some bytes of what is none: a reader that believes any of them
// reaches too far.
class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  std::size_t below(std::size_t end) { return random_() % end; }

  std::string mutate(std::string text) {
    switch (random_() % 4) {
      case 0:
        text[random_() % text.size()] = static_cast<char>(' ' + random_() % 95);
        return text;
      case 1:
        return with_other_lines(text);
      default:
        return with_other_number(text);
    }
  }

  // Bytes that are others, more or fewer.
  std::string mutate_bytes(std::string bytes) {
    const std::size_t at = random_() % (bytes.size() + 1),
                      count = std::min<std::size_t>(1 + random_() % 8, bytes.size() - at);
    switch (random_() % 4) {
      case 0:
        return bytes.erase(at, count);
      case 1:
        return bytes.insert(at, bytes.substr(random_() % (bytes.size() + 1), 1 + random_() % 64));
      default:
        for (std::size_t i = at; i < at + count; ++i) {
          const unsigned char others[] = {0, 1, 0x7f, 0x80, 0xff, static_cast<unsigned char>(random_())};
          bytes[i] = static_cast<char>(others[random_() % std::size(others)]);
        }
        return bytes;
    }
  }

 private:
  std::string with_other_number(std::string text) {
    const auto numbers = numbers_of(text);
    const auto [begin, end] = numbers[random_() % numbers.size()];
    const std::string old = text.substr(begin, end - begin);
    const std::int64_t value = old.size() < 15 ? std::stoll(old) : 0;
    const auto [other_begin, other_end] = numbers[random_() % numbers.size()];
    const std::string replacements[] = {"0",
                                        "1",
                                        "-1",
                                        std::to_string(value + 1),
                                        std::to_string(value - 1),
                                        std::to_string(value * 2),
                                        std::to_string(value / 2),
                                        std::to_string(value * 3),
                                        "4294967296",
                                        "2147483647",
                                        "65536",
                                        text.substr(other_begin, other_end - other_begin)};
    return text.replace(begin, end - begin, replacements[random_() % std::size(replacements)]);
  }

  // A line less, or one twice.
  std::string with_other_lines(std::string text) {
    const std::size_t at = random_() % text.size();
    const std::size_t before = text.rfind('\n', at);
    const std::size_t begin = before == std::string::npos ? 0 : before;
    const std::size_t end = std::min(text.find('\n', at + 1), text.size());
    if (end <= begin) return text;
    const std::string line = text.substr(begin, end - begin);
    return random_() % 2 == 0 ? text.erase(begin, end - begin) : text.insert(begin, line);
  }

  std::mt19937 random_;
};

}  // namespace burin_test

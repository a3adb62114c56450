// What is said of long work where no terminal can show a bar: a line now and then.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace burin {

// Has no clock of its own: whoever asks says what time it is.
class ProgressLines {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kInterval{10};

  ProgressLines(std::string title, Time start) : title_(std::move(title)), start_(start), last_(start) {}

  // What the next line will say.
  void update(int done, int total, std::string_view what, std::optional<double> share);
  // Something else was printed that tells of the work.
  void printed(Time now) { last_ = now; }
  // When the next line is due.
  Time next() const { return last_ + kInterval; }
  // "compiling: 12 of 53 after 20 s, about 40 s left: conv1 b1", where one is due.
  std::optional<std::string> due(Time now);

 private:
  std::string title_;
  Time start_, last_;
  int done_ = 0, total_ = 0;
  std::string what_;
  std::optional<double> share_;
};

// "about 2 min 10 s left", by what has been done so far; empty when that says too little.
std::string remaining_text(double elapsed_seconds, double share);

}  // namespace burin

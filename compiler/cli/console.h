// What goes to the terminal: data to stdout, everything else to stderr; colours and progress only where a person looks.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace burin {

// "burin: error: TEXT" to stderr.
void print_error(std::string_view text);
// "burin: note: TEXT" to stderr.
void print_note(std::string_view text);
// To stdout, checked: throws Error(usage) where it cannot be written (a full disk, a closed pipe).
void print_data(std::string_view text);

enum class Colour { red, green };
// `text` in a colour where stdout is a terminal that wants colours (NO_COLOR and TERM=dumb do not), else as it is.
std::string coloured(std::string_view text, Colour colour);

// One line on stderr that is drawn over; silent where stderr is no terminal. Thread-safe.
class ProgressBar {
 public:
  explicit ProgressBar(std::string title);
  ~ProgressBar();  // wipes the line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `share` of all work is done, where that is known better than by counting: what is left to wait is then shown.
  void update(int done, int total, std::string_view what, std::optional<double> share = {});
  // Wipes the line, so that other output starts on a clean one; the next update draws it again.
  void wipe();

 private:
  const std::string title_;
  const bool visible_;
  std::mutex mutex_;
  bool drawn_ = false;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_{};
};

// "about 2 min 10 s left", by what has been done so far; empty when that says too little.
std::string remaining_text(double elapsed_seconds, double share);

}  // namespace burin

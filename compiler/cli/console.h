// What goes to the terminal: data to stdout, everything else to stderr; colours and bars only where a person looks.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "compiler/cli/progress_lines.h"

namespace burin {

// How much is said on stderr: quiet, errors alone; verbose, a line for each step that is finished, too.
enum class Verbosity { quiet, normal, verbose };
void set_verbosity(Verbosity verbosity);

// "burin: error: TEXT" to stderr.
void print_error(std::string_view text);
// "burin: note: TEXT" to stderr, unless quiet.
void print_note(std::string_view text);
// "burin: TEXT" to stderr where verbose.
void print_step(std::string_view text);
// Writes to stdout, and throws Error(usage) where that fails (a full disk, a closed pipe).
void print_data(std::string_view text);

enum class Colour { red, green };
// `text` in a colour where stdout is a terminal that wants colours (NO_COLOR and TERM=dumb do not), else as it is.
std::string coloured(std::string_view text, Colour colour);

// Tells on stderr how far long work is: on a terminal by one line that is drawn over, else by a line every ten seconds
// (ProgressLines). Thread-safe.
class ProgressBar {
 public:
  explicit ProgressBar(std::string title);
  ~ProgressBar();  // wipes the line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `total` 0: what has been done cannot be counted. `share` of all work is done, where that is known better than by
  // counting: what is left to wait is then shown.
  void update(int done, int total, std::string_view what, std::optional<double> share = {});
  // A step has ended: a line of its own where verbose.
  void finished(std::string_view what);
  // Wipes the line, so that other output starts on a clean one; the next update draws it again.
  void wipe();

 private:
  enum class Form { none, bar, lines };

  void draw(int done, int total, std::string_view what, std::optional<double> share);
  void wipe_locked();
  void print_lines(const std::stop_token& stop);  // until then

  const std::string title_;
  const Form form_;
  std::mutex mutex_;  // of what follows
  bool drawn_ = false;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_{};
  ProgressLines lines_;
  std::condition_variable_any ended_;
  std::jthread printer_;  // of the lines
};

}  // namespace burin

// What goes to the terminal: data to stdout, everything else to stderr; colours and bars only where a person looks.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace burin {

// How much is said on stderr: quiet, errors alone; verbose, a line for each step that is finished, too.
enum class Verbosity { quiet, normal, verbose };
void set_verbosity(Verbosity verbosity);

// To be called first. A standard stream that is closed takes nothing from then on: else the next file that is opened
// would be it, and messages would land there. A file that may not grow further is an error of who writes it, not the
// end of the process.
void prepare_streams();

// As it is, to stderr.
void print_help(const std::string& text);
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

// What is said of long work where no terminal can show a bar: a line now and then. Has no clock of its own: whoever
// asks says what time it is.
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

 private:
  enum class Form { none, bar, lines };

  void draw(int done, int total, std::string_view what, std::optional<double> share);
  void wipe();  // so that other output starts on a clean line; the next update draws it again
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

#include "compiler/cli/console.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "ir/error.h"

namespace burin {
namespace {

// A drawing costs more than the work it reports when it is done for every step.
constexpr auto kRedrawInterval = std::chrono::milliseconds(50);
constexpr int kBarCells = 24;

std::atomic<Verbosity> verbosity = Verbosity::normal;

bool wants_colours(int descriptor) {
  const char* no_colour = std::getenv("NO_COLOR");
  if (no_colour != nullptr && *no_colour != '\0') return false;
  const char* term = std::getenv("TERM");
  if (term == nullptr || std::string_view(term) == "dumb") return false;
  return isatty(descriptor) == 1;
}

std::string painted(std::string_view text, const char* code, int descriptor) {
  return wants_colours(descriptor) ? fmt::format("\033[{}m{}\033[0m", code, text) : std::string(text);
}

int terminal_columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

// To stderr. What cannot be written there, since it is closed or its disk is full, is lost; the work goes on.
void tell(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

// A line on stderr, after what was written to stdout before it.
void say(std::string_view text) {
  std::fflush(stdout);
  tell(fmt::format("burin: {}\n", text));
}

constexpr double kMinute = 60;

// "50 s", "2 min 10 s"
std::string duration_text(double seconds) {
  if (seconds < kMinute) return fmt::format("{:.0f} s", seconds);
  return fmt::format("{:.0f} min {:.0f} s", std::floor(seconds / kMinute), std::fmod(seconds, kMinute));
}

}  // namespace

void set_verbosity(Verbosity wanted) { verbosity = wanted; }

void prepare_streams() {
  int opened = 0;
  do {
    opened = ::open("/dev/null", O_RDONLY);
  } while (opened >= 0 && opened <= STDERR_FILENO);
  if (opened >= 0) ::close(opened);
  std::signal(SIGXFSZ, SIG_IGN);
}

void print_help(const std::string& text) { tell(text); }

void print_error(std::string_view text) { say(fmt::format("{} {}", painted("error:", "1;31", STDERR_FILENO), text)); }

void print_note(std::string_view text) {
  if (verbosity != Verbosity::quiet) say(fmt::format("{} {}", painted("note:", "1;36", STDERR_FILENO), text));
}

void print_step(std::string_view text) {
  if (verbosity == Verbosity::verbose) say(text);
}

void print_data(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) fail(ErrorKind::usage, "cannot write to standard output");
}

std::string coloured(std::string_view text, Colour colour) {
  return painted(text, colour == Colour::red ? "31" : "32", STDOUT_FILENO);
}

std::string remaining_text(double elapsed_seconds, double share) {
  constexpr double kTooEarly = 2, kTooLittle = 0.02, kStep = 5;
  if (elapsed_seconds < kTooEarly || share < kTooLittle || share >= 1) return "";
  return fmt::format("about {} left", duration_text(std::ceil(elapsed_seconds * (1 - share) / share / kStep) * kStep));
}

void ProgressLines::update(int done, int total, std::string_view what, std::optional<double> share) {
  done_ = done;
  total_ = total;
  what_ = what;
  share_ = share;
}

std::optional<std::string> ProgressLines::due(Time now) {
  if (now < next()) return std::nullopt;
  last_ = now;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  std::string text = title_ + ":";
  if (total_ > 0) text += fmt::format(" {} of {}", done_, total_);
  text += fmt::format(" after {}", duration_text(std::floor(elapsed)));
  const std::string left = share_ ? remaining_text(elapsed, *share_) : "";
  if (!left.empty()) text += ", " + left;
  if (!what_.empty()) text += ": " + what_;
  return text;
}

ProgressBar::ProgressBar(std::string title)
    : title_(std::move(title)),
      form_(verbosity == Verbosity::quiet ? Form::none
            : isatty(STDERR_FILENO) == 1  ? Form::bar
                                          : Form::lines),
      lines_(title_, start_) {
  if (form_ == Form::lines) {
    printer_ = std::jthread([this](const std::stop_token& stop) { print_lines(stop); });
  }
}

ProgressBar::~ProgressBar() {
  if (printer_.joinable()) {
    printer_.request_stop();
    printer_.join();
  }
  wipe();
}

void ProgressBar::print_lines(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    if (const std::optional<std::string> line = lines_.due(std::chrono::steady_clock::now())) say(*line);
    ended_.wait_until(lock, stop, lines_.next(), [] { return false; });
  }
}

void ProgressBar::update(int done, int total, std::string_view what, std::optional<double> share) {
  if (form_ == Form::none) return;
  const std::lock_guard lock(mutex_);
  if (form_ == Form::lines) {
    lines_.update(done, total, what, share);
  } else if (total > 0) {
    draw(done, total, what, share);
  }
}

void ProgressBar::draw(int done, int total, std::string_view what, std::optional<double> share) {
  const auto now = std::chrono::steady_clock::now();
  if (drawn_ && done < total && now - last_ < kRedrawInterval) return;
  last_ = now;
  drawn_ = true;
  const double part = share.value_or(static_cast<double>(done) / total);
  const int filled = std::clamp(static_cast<int>(part * kBarCells), 0, kBarCells);
  std::string line = fmt::format("{} [{}{}] {}/{} ", title_, std::string(static_cast<std::size_t>(filled), '#'),
                                 std::string(static_cast<std::size_t>(kBarCells - filled), '.'), done, total);
  if (share) {
    const std::string left = remaining_text(std::chrono::duration<double>(now - start_).count(), *share);
    if (!left.empty()) line += left + ", ";
  }
  line += what;
  const auto columns = static_cast<std::size_t>(terminal_columns() - 1);
  if (line.size() > columns) line.resize(columns);
  tell("\r\033[K" + line);
}

void ProgressBar::finished(std::string_view what) {
  if (verbosity != Verbosity::verbose) return;
  const std::lock_guard lock(mutex_);
  wipe();
  print_step(fmt::format("{}: {}", title_, what));
  lines_.printed(std::chrono::steady_clock::now());
}

void ProgressBar::wipe() {
  if (!drawn_) return;
  drawn_ = false;
  tell("\r\033[K");
}

}  // namespace burin

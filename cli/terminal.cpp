#include "cli/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

namespace kvasir::cli {
namespace {

CancelToken interrupted;           // a signal handler can only reach what is global
struct sigaction previous_action;  // restored by the guard

int wake_pipe[2] = {-1, -1};  // readable after a Ctrl-C, so that poll sees it

void on_interrupt(int) {
  interrupted.request();
  const int saved = errno;
  (void)!write(wake_pipe[1], "", 1);
  errno = saved;
}

bool stdout_failed = false;  // by the program's only writer

/// stderr is the last resort: when it cannot be written either, there is nobody left to tell.
void print_error(std::string_view text) {
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
  (void)std::fflush(stderr);
}

struct Character {
  uint32_t code = 0;
  size_t size = 1;
};

/// The character at the beginning of `text` (not empty); nothing when the bytes are not UTF-8.
std::optional<Character> first_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return Character{first, 1};
  const size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size) return std::nullopt;
  uint32_t code = first & (0xFFU >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return std::nullopt;
    code = (code << 6) | (byte(i) & 0x3FU);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[size] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
    return std::nullopt;
  return Character{code, size};
}

bool is_control(uint32_t code) {
  const bool turns_direction =
      (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || turns_direction;
}

}  // namespace

std::string printable(std::string_view text, Layout layout) {
  std::string out;
  while (!text.empty()) {
    const auto character = first_character(text);
    const size_t size = character ? character->size : 1;
    const uint32_t code = character ? character->code : static_cast<unsigned char>(text[0]);
    const bool breaks = code == '\n' || code == '\t';
    if (character && (!is_control(code) || (breaks && layout == Layout::keep))) {
      out += text.substr(0, size);
    } else if (breaks) {
      out += code == '\n' ? "\\n" : "\\t";
    } else {
      out += code < 0x100 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
    }
    text.remove_prefix(size);
  }
  return out;
}

int fail(const Error& error) {
  print_error(fmt::format("kvasir: error: {}\n", printable(error.message)));
  return error.code == ErrorCode::cancelled ? kExitInterrupted : kExitError;
}

void warn(std::string_view text) {
  print_error(fmt::format("kvasir: warning: {}\n", printable(text)));
}

void note(std::string_view text) {
  print_error(fmt::format("{}\n", text));
}

bool print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    stdout_failed = true;
  return !stdout_failed;
}

int finish_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) stdout_failed = true;
  if (!stdout_failed) return kExitOk;
  return fail({ErrorCode::io, "cannot write to standard output: what was printed is not complete"});
}

bool stdin_is_terminal() {
  return isatty(STDIN_FILENO) == 1;
}
bool stdout_is_terminal() {
  return isatty(STDOUT_FILENO) == 1;
}
bool stderr_is_terminal() {
  return isatty(STDERR_FILENO) == 1;
}

InterruptGuard::InterruptGuard() {
  if (wake_pipe[0] < 0) (void)!pipe2(wake_pipe, O_NONBLOCK | O_CLOEXEC);
  reset();
  struct sigaction action {};
  action.sa_handler = on_interrupt;  // without SA_RESTART: waiting for input ends
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &previous_action);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &previous_action, nullptr);
}

CancelToken& InterruptGuard::token() {
  return interrupted;
}

bool InterruptGuard::wait_for_input() {
  while (!interrupted.requested()) {
    pollfd fds[] = {{STDIN_FILENO, POLLIN, 0}, {wake_pipe[0], POLLIN, 0}};
    if (poll(fds, 2, -1) < 0 && errno != EINTR) return true;  // reading will say what is wrong
    if (!interrupted.requested() && fds[0].revents != 0) return true;
  }
  return false;
}

void InterruptGuard::reset() {
  char byte;
  while (read(wake_pipe[0], &byte, 1) == 1) {
  }
  interrupted.reset();
}

void ProgressBar::update(int64_t done, int64_t total) {
  if (total <= 0 || !stderr_is_terminal()) return;
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
                       std::chrono::steady_clock::now().time_since_epoch())
                       .count();
  if (now - last_us_ < 50000 && done < total) return;
  last_us_ = now;
  constexpr size_t kWidth = 30;
  const double share = static_cast<double>(done) / static_cast<double>(total);
  const auto filled = std::min(kWidth, static_cast<size_t>(share * kWidth));
  print_error(fmt::format("\r{} [{}{}] {:3.0f}%", label_, std::string(filled, '#'),
                          std::string(kWidth - filled, '.'), 100 * share));
  drawn_ = true;
}

void ProgressBar::erase() {
  if (drawn_) print_error("\r\x1b[2K");
  drawn_ = false;
}

}  // namespace kvasir::cli

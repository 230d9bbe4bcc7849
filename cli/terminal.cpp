#include "cli/terminal.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace kvasir::cli {
namespace {

CancelToken interrupted;           // a signal handler can only reach what is global
struct sigaction previous_action;  // restored by the guard

void on_interrupt(int) { interrupted.request(); }

bool stdout_failed = false;  // by the program's only writer

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 32 || byte == 127) {
      out += c == '\n' ? "\\n" : c == '\t' ? "\\t" : fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

int fail(const Error& error) {
  fmt::print(stderr, "kvasir: error: {}\n", printable(error.message));
  return kExitError;
}

void warn(std::string_view text) { fmt::print(stderr, "kvasir: warning: {}\n", printable(text)); }

void note(std::string_view text) { fmt::print(stderr, "{}\n", text); }

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

bool stderr_is_terminal() { return isatty(STDERR_FILENO) == 1; }
bool stdin_is_terminal() { return isatty(STDIN_FILENO) == 1; }

InterruptGuard::InterruptGuard() {
  interrupted.reset();
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &previous_action);
}

InterruptGuard::~InterruptGuard() { sigaction(SIGINT, &previous_action, nullptr); }

CancelToken& InterruptGuard::token() { return interrupted; }

void ProgressBar::update(int64_t done, int64_t total) {
  if (!stderr_is_terminal() || total <= 0) return;
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
                       std::chrono::steady_clock::now().time_since_epoch())
                       .count();
  if (now - last_us_ < 50000 && done < total) return;
  last_us_ = now;
  constexpr int64_t kWidth = 30;
  const auto filled = static_cast<size_t>(kWidth * done / total);
  fmt::print(stderr, "\r{} [{}{}] {:3}%", label_, std::string(filled, '#'),
             std::string(static_cast<size_t>(kWidth) - filled, '.'), 100 * done / total);
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressBar::erase() {
  if (drawn_) fmt::print(stderr, "\r\x1b[2K");
  drawn_ = false;
}

}  // namespace kvasir::cli

// Talking to a terminal or a pipe: results on stdout, everything else on stderr.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kvasir/cancel.h"
#include "kvasir/result.h"

namespace kvasir::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitError = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;  ///< as shells report SIGINT

/// "kvasir: error: ..." on stderr, one line. Returns the exit code: kExitInterrupted when the error
/// is a cancellation, else kExitError.
int fail(const Error& error);
void warn(std::string_view text);
/// Lines on stderr.
void note(std::string_view text);

/// Writes to stdout and flushes. False once stdout is broken or full.
bool print(std::string_view text);
/// kExitOk, or an error when something written to stdout was lost.
int finish_output();

/// Whether a line break or tab may pass.
enum class Layout { keep, escape };

/// Text from a file or a model that is safe on a terminal: control characters (C0, DEL, C1), marks
/// that turn the direction of text, and bytes that are not UTF-8 become \x1b or \u202e.
std::string printable(std::string_view text, Layout layout = Layout::escape);

bool stdin_is_terminal();
bool stdout_is_terminal();
bool stderr_is_terminal();

/// While it lives, Ctrl-C sets the token instead of ending the program. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  static CancelToken& token();

  /// Waits until stdin can be read (true) or the token is set (false), whichever thread the signal
  /// was delivered to.
  static bool wait_for_input();
  /// Forgets a Ctrl-C.
  static void reset();
};

/// A bar on stderr, on a terminal only; drawn at most 20 times a second, erased at the end.
class ProgressBar {
 public:
  explicit ProgressBar(std::string label) : label_(std::move(label)) {}
  ~ProgressBar() { erase(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  void update(int64_t done, int64_t total);
  void erase();

 private:
  std::string label_;
  int64_t last_us_ = 0;
  bool drawn_ = false;
};

}  // namespace kvasir::cli

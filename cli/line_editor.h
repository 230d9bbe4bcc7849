// Messages from a person: editing and history on a terminal, plain lines from a pipe.
#pragma once

#include <memory>
#include <string>

namespace kvasir::cli {

/// What was typed.
struct Input {
  enum class Kind { text, interrupted, end } kind = Kind::end;
  std::string text;
};

class LineEditor {
 public:
  /// `history_file` may be empty: no history is kept. Needs an InterruptGuard while it lives.
  static std::unique_ptr<LineEditor> create(const std::string& history_file);
  virtual ~LineEditor() = default;

  /// One message. On a terminal: a line; what was pasted at once (the terminal marks it); lines
  /// that end in a backslash; or everything between two """. From a pipe: a line.
  virtual Input read() = 0;
};

}  // namespace kvasir::cli

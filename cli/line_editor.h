// Lines from a person: editing and history on a terminal, plain lines from a pipe.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace kvasir::cli {

/// What was typed.
struct Input {
  enum class Kind { text, interrupted, end } kind = Kind::end;
  std::string text;
};

class LineEditor {
 public:
  /// `history_file` may be empty: no history is kept.
  static std::unique_ptr<LineEditor> create(const std::string& history_file);
  virtual ~LineEditor() = default;

  /// One message. On a terminal: a line; lines pasted together; lines ending in a backslash; or
  /// everything between two lines of three quotes. From a pipe: a line.
  virtual Input read(const std::string& prompt) = 0;
};

}  // namespace kvasir::cli

// Showing an answer while it is made.
#pragma once

#include <chrono>

#include "cli/terminal.h"
#include "core/engine/generate.h"

namespace kvasir::cli {

/// A progress bar while a long prompt is evaluated, then the text as it comes.
class AnswerPrinter {
 public:
  enum class Text { shown, kept };  ///< kept: nothing is printed, the caller does it at the end
  explicit AnswerPrinter(Text text);

  GenerateCallbacks callbacks();

  /// Ends the line of a shown answer.
  void finish();
  /// Instead, when there will be no answer.
  void abandon();

  /// When the prompt was evaluated and sampling began; the epoch when it never did.
  std::chrono::steady_clock::time_point answer_began() const { return began_; }

 private:
  Text text_;
  ProgressBar bar_{"reading the prompt"};
  std::chrono::steady_clock::time_point began_{};
  bool line_open_ = false;  ///< text was printed, so that a line is to be ended
};

}  // namespace kvasir::cli

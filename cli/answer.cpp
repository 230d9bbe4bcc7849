#include "cli/answer.h"

namespace kvasir::cli {
namespace {

constexpr int64_t kBarFromTokens = 1024;  // shorter prompts are done before a bar could be read

}  // namespace

AnswerPrinter::AnswerPrinter(Text text) : text_(text) {}

GenerateCallbacks AnswerPrinter::callbacks() {
  GenerateCallbacks callbacks;
  callbacks.on_prefill = [this](int64_t done, int64_t total) {
    if (total >= kBarFromTokens) bar_.update(done, total);
    if (done < total) return;
    bar_.erase();
    began_ = std::chrono::steady_clock::now();
  };
  if (text_ == Text::kept) return callbacks;
  callbacks.on_text = [this](std::string_view text) {
    line_open_ = true;
    // What a model says must not command the terminal; a file or pipe gets every byte.
    const bool lost =
        !print(stdout_is_terminal() ? printable(text, Layout::keep) : std::string(text));
    if (lost) InterruptGuard::token().request();  // nobody reads any more
  };
  return callbacks;
}

void AnswerPrinter::finish() {
  bar_.erase();
  if (text_ == Text::shown) print("\n");
  line_open_ = false;
}

void AnswerPrinter::abandon() {
  bar_.erase();
  if (line_open_) print("\n");
  line_open_ = false;
}

}  // namespace kvasir::cli

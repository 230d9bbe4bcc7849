// Showing an answer while it is made.
#pragma once

#include "cli/terminal.h"
#include "core/engine/generate.h"

namespace kvasir::cli {

/// A progress bar while the prompt is evaluated, then the text as it comes.
class AnswerPrinter {
 public:
  explicit AnswerPrinter(bool stream) : stream_(stream), bar_("reading the prompt") {}

  GenerateCallbacks callbacks() {
    GenerateCallbacks callbacks;
    callbacks.on_prefill = [this](int64_t done, int64_t total) {
      // Short prompts are done before a bar could be read.
      if (total >= 1024 && done < total) bar_.update(done, total);
      if (done >= total) bar_.erase();
    };
    callbacks.on_text = [this](std::string_view text) {
      bar_.erase();
      if (stream_ && !print(text)) InterruptGuard::token().request();  // nobody reads any more
    };
    return callbacks;
  }
  void finish() { bar_.erase(); }

 private:
  bool stream_;
  ProgressBar bar_;
};

}  // namespace kvasir::cli

// From token bytes to streamed text: whole characters, and nothing of a stop string.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/text/utf8.h"

namespace kvasir {

/// Feeds token bytes in, gives text out that is safe to show: a part that may still turn out to
/// be the beginning of a stop string is held back; the stop string and what follows are dropped.
/// Stop strings are compared as bytes. All deltas joined equal the text of one large push.
class TextStream {
 public:
  explicit TextStream(std::vector<std::string> stop_strings = {});

  /// Text that became certain; after a stop it is always empty.
  std::string push(std::string_view token_bytes);

  /// At the end of generation: everything held back (unless stopped), the unfinished character as
  /// one U+FFFD.
  std::string finish();

  /// A stop string has been seen: the caller ends the generation.
  bool stopped() const { return stopped_; }
  /// Which one; empty when none.
  const std::string& stop_string() const { return matched_; }

 private:
  std::vector<std::string> stop_strings_;
  std::string held_;  // bytes not yet given out
  std::string matched_;
  Utf8Assembler assembler_;
  bool stopped_ = false;
};

}  // namespace kvasir

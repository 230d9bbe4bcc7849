// From token bytes to streamed text: whole characters, and nothing of a stop string.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/utf8.h"

namespace kvasir {

/// Feeds token bytes in, gives text out that is safe to show: a part that may still turn out to
/// be the beginning of a stop string is held back; the stop string and what follows are dropped.
/// Stop strings are compared as bytes, empty ones are ignored. The one whose last byte comes first
/// counts, of several that end there the longest: so all deltas joined equal the text of one large
/// push. Time is linear in the bytes times the number of stop strings. Not thread-safe.
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
  /// A stop string and how much of it the last bytes are (Knuth, Morris and Pratt 1977).
  struct Stop {
    std::string text;
    std::vector<size_t>
        borders;         // [n]: longest proper beginning of the first n bytes that ends them
    size_t matched = 0;  // longest beginning of `text` that the bytes so far end with
  };
  static Stop prepare(std::string text);
  static void advance(Stop& stop, char byte);

  std::vector<Stop> stops_;
  std::string held_;  // the bytes of the longest `matched`: not given out yet
  std::string matched_;
  Utf8Assembler assembler_;
  bool stopped_ = false;
};

}  // namespace kvasir

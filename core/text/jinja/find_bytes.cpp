#include "core/text/jinja/find_bytes.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kvasir::jinja {
namespace {

// Up to this length the library's search, at most 32 comparisons a byte, is as good as linear.
constexpr size_t kShort = 32;

/// Crochemore and Perrin's two-way search is what memmem() does, but that is no part of C++; Knuth,
/// Morris and Pratt's is as linear and ten lines. It needs 4 bytes a needle byte.
size_t find_long(std::string_view text, std::string_view needle, size_t from) {
  std::vector<uint32_t> border(needle.size(), 0);  // of each beginning of the needle, its border
  for (size_t i = 1, k = 0; i < needle.size(); ++i) {
    while (k > 0 && needle[i] != needle[k]) k = border[k - 1];
    if (needle[i] == needle[k]) ++k;
    border[i] = static_cast<uint32_t>(k);
  }
  for (size_t i = from, k = 0; i < text.size(); ++i) {
    while (k > 0 && text[i] != needle[k]) k = border[k - 1];
    if (text[i] == needle[k]) ++k;
    if (k == needle.size()) return i + 1 - k;
  }
  return std::string_view::npos;
}

}  // namespace

size_t find_bytes(std::string_view text, std::string_view needle, size_t from) {
  if (from > text.size() || needle.size() > text.size() - from) return std::string_view::npos;
  return needle.size() <= kShort ? text.find(needle, from) : find_long(text, needle, from);
}

size_t find_bytes_from_right(Context& context, std::string_view text, std::string_view needle) {
  if (needle.size() > text.size()) return std::string_view::npos;
  const auto length = static_cast<int64_t>(std::min(needle.size(), size_t{1} << 20));
  if (!context.step(static_cast<int64_t>(text.size() / 64) * length)) return std::string_view::npos;
  return text.rfind(needle);
}

}  // namespace kvasir::jinja

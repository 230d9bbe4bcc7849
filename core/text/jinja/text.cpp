#include "core/text/jinja/text.h"

#include <algorithm>

namespace kvasir::jinja {

bool TextBuilder::grow(size_t size) {
  if (context_.failed()) return false;
  const size_t capacity = text_.bytes.capacity();
  if (size <= capacity) return true;
  const size_t larger = std::max(size, capacity + capacity / 2);
  // Old and new block are alive together while the bytes move.
  const auto bytes = static_cast<int64_t>(larger);
  if (!context_.take_bytes(bytes)) return false;
  text_.bytes.reserve(larger);
  if (capacity > 15) {  // std::string's own 15 bytes were never charged
    context_.give_back_bytes(static_cast<int64_t>(capacity));
    charged_ -= static_cast<int64_t>(capacity);
  }
  charged_ += bytes;
  return true;
}

void TextBuilder::mark(size_t begin, size_t end) {
  if (begin == end) return;
  auto& content = text_.content;
  if (!content.empty() && content.back().end == begin) {
    content.back().end = end;
    return;
  }
  // A vector that doubles holds at most 3 times its entries while it moves.
  constexpr int64_t kBytes = 3 * sizeof(ByteRange);
  if (!context_.take_bytes(kBytes)) return;
  charged_ += kBytes;
  content.push_back({begin, end});
}

void TextBuilder::append(std::string_view bytes, bool is_content) {
  const size_t begin = text_.bytes.size();
  if (!grow(begin + bytes.size()) || !context_.work(bytes.size())) return;
  text_.bytes += bytes;
  if (is_content) mark(begin, begin + bytes.size());
}

void TextBuilder::append(const Text& text, size_t begin, size_t end) {
  const size_t base = text_.bytes.size();
  append(std::string_view(text.bytes).substr(begin, end - begin), false);
  if (context_.failed()) return;
  auto range = std::upper_bound(text.content.begin(), text.content.end(), begin,
                                [](size_t at, const ByteRange& r) { return at < r.end; });
  for (; range != text.content.end() && range->begin < end; ++range) {
    mark(base + std::max(range->begin, begin) - begin, base + std::min(range->end, end) - begin);
  }
}

Text TextBuilder::take(int64_t& charged) {
  charged = std::exchange(charged_, 0);
  return std::exchange(text_, Text{});
}

}  // namespace kvasir::jinja

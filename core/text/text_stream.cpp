#include "core/text/text_stream.h"

#include <algorithm>

namespace kvasir {
namespace {

/// Length of the longest end of `text` that is a proper beginning of one of the stop strings.
size_t longest_beginning(std::string_view text, const std::vector<std::string>& stops) {
  size_t longest = 0;
  for (const auto& stop : stops) {
    const size_t most = std::min(text.size(), stop.size() - 1);
    for (size_t n = most; n > longest; --n) {
      if (text.substr(text.size() - n) == std::string_view(stop).substr(0, n)) {
        longest = n;
        break;
      }
    }
  }
  return longest;
}

}  // namespace

TextStream::TextStream(std::vector<std::string> stop_strings)
    : stop_strings_(std::move(stop_strings)) {
  std::erase_if(stop_strings_, [](const auto& stop) { return stop.empty(); });
}

std::string TextStream::push(std::string_view token_bytes) {
  if (stopped_) return {};
  // The stop string that ends first wins, whatever the pieces the bytes came in; among those that
  // end at the same byte the longest, so that nothing of it is shown.
  std::string delta;
  for (const char byte : token_bytes) {
    held_ += byte;
    const std::string* match = nullptr;
    for (const auto& stop : stop_strings_) {
      if (held_.ends_with(stop) && (match == nullptr || stop.size() > match->size())) match = &stop;
    }
    if (match != nullptr) {
      matched_ = *match;
      stopped_ = true;
      held_.resize(held_.size() - match->size());
      delta += assembler_.push(held_);
      held_.clear();
      return delta + assembler_.finish();
    }
    const size_t certain = held_.size() - longest_beginning(held_, stop_strings_);
    delta += assembler_.push(std::string_view(held_).substr(0, certain));
    held_.erase(0, certain);
  }
  return delta;
}

std::string TextStream::finish() {
  if (stopped_) return {};
  std::string rest = assembler_.push(held_);
  held_.clear();
  return rest + assembler_.finish();
}

}  // namespace kvasir

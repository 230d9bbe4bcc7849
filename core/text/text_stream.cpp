#include "core/text/text_stream.h"

#include <algorithm>

namespace kvasir {

TextStream::Stop TextStream::prepare(std::string text) {
  Stop stop;
  stop.text = std::move(text);
  stop.borders.assign(stop.text.size() + 1, 0);
  size_t border = 0;
  for (size_t n = 2; n <= stop.text.size(); ++n) {
    const char byte = stop.text[n - 1];
    while (border > 0 && stop.text[border] != byte) border = stop.borders[border];
    if (stop.text[border] == byte) ++border;
    stop.borders[n] = border;
  }
  return stop;
}

/// `stop.matched` is below the length of the text before, and at most the length afterwards.
void TextStream::advance(Stop& stop, char byte) {
  while (stop.matched > 0 && stop.text[stop.matched] != byte)
    stop.matched = stop.borders[stop.matched];
  if (stop.text[stop.matched] == byte) ++stop.matched;
}

TextStream::TextStream(std::vector<std::string> stop_strings) {
  for (auto& text : stop_strings) {
    if (!text.empty()) stops_.push_back(prepare(std::move(text)));
  }
}

std::string TextStream::push(std::string_view token_bytes) {
  if (stopped_) return {};
  // The bytes still held come first; how far each stop string had matched them is known.
  std::string bytes = std::move(held_);
  held_.clear();
  const size_t n_held = bytes.size();
  bytes += token_bytes;
  size_t n_open = n_held;  // last bytes that may begin a stop string
  for (size_t i = n_held; i < bytes.size(); ++i) {
    const Stop* match = nullptr;
    n_open = 0;
    for (auto& stop : stops_) {
      advance(stop, bytes[i]);
      n_open = std::max(n_open, stop.matched);
      const bool is_whole = stop.matched == stop.text.size();
      if (is_whole && (match == nullptr || stop.text.size() > match->text.size())) match = &stop;
    }
    if (match != nullptr) {
      matched_ = match->text;
      stopped_ = true;
      bytes.resize(i + 1 - match->text.size());
      std::string delta = assembler_.push(bytes);
      return delta + assembler_.finish();
    }
  }
  held_ = bytes.substr(bytes.size() - n_open);
  bytes.resize(bytes.size() - n_open);
  return assembler_.push(bytes);
}

std::string TextStream::finish() {
  if (stopped_) return {};
  std::string rest = assembler_.push(held_);
  held_.clear();
  for (auto& stop : stops_) stop.matched = 0;
  return rest + assembler_.finish();
}

}  // namespace kvasir

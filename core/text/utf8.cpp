#include "core/text/utf8.h"

namespace kvasir {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// What stands at the beginning of `bytes`: `length` bytes that are a character (valid), can still
/// become one (neither), or never will (invalid; then the maximal such part).
struct Decoded {
  size_t length = 0;
  enum class Kind { valid, unfinished, invalid } kind = Kind::invalid;
};

Decoded decode_first(std::string_view bytes) {
  using Kind = Decoded::Kind;
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned lead = at(0);
  if (lead < 0x80) return {1, Kind::valid};
  // Well-formed sequences (Unicode, table 3-7): length, and the range of the second byte.
  size_t length = 0;
  unsigned low = 0x80, high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {1, Kind::invalid};
  }
  for (size_t i = 1; i < length; ++i) {
    if (i == bytes.size()) return {i, Kind::unfinished};
    if (at(i) < low || at(i) > high) return {i, Kind::invalid};
    low = 0x80;
    high = 0xBF;
  }
  return {length, Kind::valid};
}

}  // namespace

std::optional<size_t> find_invalid_utf8(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const Decoded first = decode_first(bytes.substr(at));
    if (first.kind != Decoded::Kind::valid) return at;
    at += first.length;
  }
  return std::nullopt;
}

std::string Utf8Assembler::push(std::string_view bytes) {
  pending_ += bytes;
  std::string whole;
  size_t at = 0;
  while (at < pending_.size()) {
    const auto rest = std::string_view(pending_).substr(at);
    const Decoded first = decode_first(rest);
    if (first.kind == Decoded::Kind::unfinished) break;
    whole += first.kind == Decoded::Kind::valid ? rest.substr(0, first.length) : kReplacement;
    at += first.length;
  }
  pending_.erase(0, at);
  return whole;
}

std::string Utf8Assembler::finish() {
  std::string rest(pending_.empty() ? std::string_view() : kReplacement);
  pending_.clear();
  return rest;
}

}  // namespace kvasir

#include "core/text/byte_level.h"

namespace kvasir {
namespace {

bool is_printable(int byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

/// All code points used are below U+0800: two bytes at most.
std::string utf8_of(int code_point) {
  std::string text;
  if (code_point < 0x80) {
    text += static_cast<char>(code_point);
  } else {
    text += static_cast<char>(0xC0 | (code_point >> 6));
    text += static_cast<char>(0x80 | (code_point & 63));
  }
  return text;
}

struct Spellings {
  Spellings() {
    bytes_of.fill(-1);
    int next = 256;
    for (int byte = 0; byte < 256; ++byte) {
      const int code_point = is_printable(byte) ? byte : next++;
      of[static_cast<size_t>(byte)] = utf8_of(code_point);
      bytes_of[static_cast<size_t>(code_point)] = static_cast<int16_t>(byte);
    }
  }
  std::array<std::string, 256> of;
  std::array<int16_t, 324> bytes_of;  // by code point: 256 + 68 bytes that are not printable
};

const Spellings& spellings() {
  static const Spellings all;
  return all;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::optional<uint8_t> byte_of_token(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || !text.ends_with(">")) return std::nullopt;
  const int high = hex_digit(text[3]);
  const int low = hex_digit(text[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<uint8_t>(high * 16 + low);
}

const std::array<std::string, 256>& byte_spellings() {
  return spellings().of;
}

std::optional<std::string> spelled_bytes(std::string_view entry) {
  std::string bytes;
  for (size_t i = 0; i < entry.size(); ++i) {
    int code_point = static_cast<unsigned char>(entry[i]);
    if (code_point >= 0x80) {
      if ((code_point & 0xE0) != 0xC0 || i + 1 == entry.size()) return std::nullopt;
      const int next = static_cast<unsigned char>(entry[++i]);
      if ((next & 0xC0) != 0x80) return std::nullopt;
      code_point = ((code_point & 0x1F) << 6) | (next & 63);
    }
    const auto& of = spellings().bytes_of;
    if (code_point >= static_cast<int>(of.size()) || of[static_cast<size_t>(code_point)] < 0)
      return std::nullopt;
    bytes += static_cast<char>(of[static_cast<size_t>(code_point)]);
  }
  return bytes;
}

}  // namespace kvasir

// How vocabularies spell bytes as text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kvasir {

/// GPT-2's spelling (Radford et al. 2019), in which every byte has a printable character: itself
/// where it is printable Latin-1, else U+0100 and on, in the order of the bytes. UTF-8.
const std::array<std::string, 256>& byte_spellings();

/// The bytes that a vocabulary entry spells; nothing when a character of it spells no byte.
std::optional<std::string> spelled_bytes(std::string_view entry);

/// The byte of a byte token, "<0x00>" to "<0xFF>" with exactly two hexadecimal digits of either
/// case; nothing for any other text.
std::optional<uint8_t> byte_of_token(std::string_view text);

}  // namespace kvasir

// GPT-2's spelling of bytes: a vocabulary of text in which every byte has a printable character
// (Radford et al. 2019).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace kvasir {

/// The UTF-8 spelling of each byte: itself where it is printable Latin-1, else U+0100 and on.
const std::array<std::string, 256>& byte_spellings();

/// The bytes that a vocabulary entry spells; nothing when a character of it spells no byte.
std::optional<std::string> spelled_bytes(std::string_view entry);

}  // namespace kvasir

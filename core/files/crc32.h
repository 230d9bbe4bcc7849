// CRC-32 as zip files use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kvasir {

/// The checksum of ISO 3309 (polynomial 0x04C11DB7, reflected) of what came before, whose checksum
/// is `before` (0: nothing), followed by `bytes`.
uint32_t crc32(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace kvasir

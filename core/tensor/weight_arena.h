// One piece of memory for all packed weights of a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "kvasir/result.h"

namespace kvasir {

/// Anonymous memory in 2 MiB alignment that asks for huge pages: decoding streams all of it for
/// every token, and 4 KiB pages cost a translation miss every 64 lines. Read-only use is
/// thread-safe.
class WeightArena {
 public:
  WeightArena() = default;
  WeightArena(WeightArena&& other) noexcept;
  WeightArena& operator=(WeightArena&& other) noexcept;
  ~WeightArena();

  static Result<WeightArena> allocate(size_t size_bytes);

  std::byte* data() { return data_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  void* mapping_ = nullptr;
  size_t mapping_bytes_ = 0;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace kvasir

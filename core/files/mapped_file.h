// A file mapped read-only into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "kvasir/result.h"

namespace kvasir {

/// What an errno means, for people. Thread-safe, unlike strerror, and the same in every locale.
std::string system_reason(int error);

/// Owns the mapping; views into it are valid as long as this lives. Reading is thread-safe.
/// A file that is truncated by someone else while mapped is outside what can be caught.
class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  /// Refuses folders and everything that is not a regular file, naming it. An empty file maps to
  /// an empty span.
  static Result<MappedFile> open(const std::string& path);

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

  /// Gives the pages wholly inside [begin, begin+size) back to the system; they are read again
  /// from the file when touched. Keeps peak memory low while weights are packed.
  void drop_pages(const std::byte* begin, uint64_t size) const;

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::string path_;
};

}  // namespace kvasir

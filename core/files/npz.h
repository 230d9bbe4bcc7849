// NumPy's archives (numpy.savez): zip files of arrays, stored without compression.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/atomic_file.h"
#include "core/files/npy.h"
#include "kvasir/result.h"

namespace kvasir::npz {

/// One file inside; a view of the archive's bytes.
struct Member {
  std::string name;  ///< "logits.npy"
  std::span<const std::byte> data;
  uint32_t crc = 0;
};

/// The members of an archive in memory, which must outlive it. Zip64 is understood; compressed or
/// encrypted members are errors that name them (PKWARE's APPNOTE 6.3.9 defines the format).
class Archive {
 public:
  static Result<Archive> parse(std::span<const std::byte> bytes);

  std::span<const Member> members() const { return members_; }

  bool contains(std::string_view name) const { return find(name).ok(); }

  /// The array of that name (without ".npy"). not_found lists the names that are there.
  Result<npy::Array> array(std::string_view name) const;

  /// Reads all bytes of a member: an error names it when they are not those that were written.
  Status check_sum(std::string_view name) const;

 private:
  Result<const Member*> find(std::string_view name) const;
  std::vector<Member> members_;
};

/// Writes an archive from front to back, array after array, row after row: nothing is held in
/// memory and nothing needs to seek. The file appears at `finish`, whole.
class Writer {
 public:
  static Result<Writer> create(const std::string& path);

  /// Starts an array, after the bytes of the one before are complete.
  Status begin(std::string_view name, npy::Element element, std::span<const int64_t> shape);
  /// The next bytes of its elements.
  Status write(std::span<const std::byte> bytes);
  Status finish();

 private:
  explicit Writer(AtomicFile file) : file_(std::move(file)) {}
  Status put(std::string_view bytes);
  Status end_member();

  struct Written {
    std::string name;
    uint64_t offset;  ///< of the local header
    uint64_t size;
    uint32_t crc;
  };
  AtomicFile file_;
  uint64_t position_ = 0;
  uint64_t data_begin_ = 0;  ///< of the member being written
  uint64_t bytes_missing_ = 0;
  std::vector<Written> members_;
};

}  // namespace kvasir::npz

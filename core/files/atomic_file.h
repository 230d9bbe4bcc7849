// A file that appears whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "kvasir/result.h"

namespace kvasir {

/// Writes to a temporary file beside the wanted path; `commit` flushes it to the disk and renames
/// it over whatever was there. Without commit the temporary file is removed and the old file stays.
class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::string& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  ~AtomicFile();

  Status write(std::string_view bytes);
  Status commit();

 private:
  AtomicFile() = default;
  Error error(const char* what) const;

  std::string path_;
  std::string temporary_;
  int fd_ = -1;
};

}  // namespace kvasir

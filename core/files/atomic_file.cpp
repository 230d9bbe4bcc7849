#include "core/files/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "core/base/error.h"
#include "core/files/mapped_file.h"

namespace kvasir {

Error AtomicFile::error(const char* what) const {
  return make_error(ErrorCode::io, "cannot {} '{}': {}", what, path_, system_reason(errno));
}

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  AtomicFile file;
  file.path_ = path;
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    // A device or pipe (/dev/null, /dev/stdout) is written to as it is.
    if (S_ISDIR(info.st_mode))
      return make_error(ErrorCode::io, "cannot write '{}': it is a folder", path);
    file.fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file.fd_ < 0) return file.error("write");
    return file;
  }
  file.temporary_ = path + ".XXXXXX";
  file.fd_ = mkostemp(file.temporary_.data(), O_CLOEXEC);
  if (file.fd_ < 0) {
    file.temporary_.clear();
    return file.error("write");
  }
  const mode_t mask = umask(0);
  umask(mask);
  (void)fchmod(file.fd_, 0666 & ~mask);
  return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept {
  *this = std::move(other);
}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(fd_, other.fd_);
  return *this;
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status AtomicFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return error("write");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Status AtomicFile::commit() {
  if (temporary_.empty()) {
    const int closed = ::close(std::exchange(fd_, -1));
    return closed == 0 ? Status() : error("write");
  }
  if (fsync(fd_) != 0) return error("write");
  if (::close(std::exchange(fd_, -1)) != 0) return error("write");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return error("write");
  temporary_.clear();
  return {};
}

}  // namespace kvasir

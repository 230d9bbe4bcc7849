#include "core/files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/error.h"

namespace kvasir {

std::string system_reason(int error) {
  switch (error) {
    case ENOENT: return "no such file or folder";
    case EACCES:
    case EPERM: return "permission denied";
    case ENOMEM: return "out of memory";
    case ENOSPC:
    case EDQUOT: return "the disk is full";
    case EROFS: return "the file system is read-only";
    case EMFILE:
    case ENFILE: return "too many open files";
    case ENAMETOOLONG: return "the name is too long";
    case EISDIR: return "it is a folder";
    case ENOTDIR: return "a part of the path is not a folder";
    case ELOOP: return "too many symbolic links";
    case EPIPE: return "the reader is gone";
    default: return fmt::format("system error {}", error);
  }
}

namespace {

Error io_error(const std::string& path, int error) {
  return make_error(error == ENOENT ? ErrorCode::not_found : ErrorCode::io, "cannot open '{}': {}",
                    path, system_reason(error));
}

}  // namespace

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: opening a FIFO would wait for a writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return io_error(path, errno);
  struct stat info {};
  if (fstat(fd, &info) != 0) {
    const int error = errno;
    ::close(fd);
    return io_error(path, error);
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    return make_error(ErrorCode::io, "cannot open '{}': it is {}, not a regular file", path,
                      S_ISDIR(info.st_mode) ? "a folder" : "a device, pipe or socket");
  }
  MappedFile file;
  file.path_ = path;
  if (info.st_size > 0) {
    const auto size = static_cast<size_t>(info.st_size);
    void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    const int error = errno;
    ::close(fd);
    if (data == MAP_FAILED) return io_error(path, error);
    file.data_ = static_cast<const std::byte*>(data);
    file.size_ = size;
    return file;
  }
  ::close(fd);
  return file;
}

void MappedFile::drop_pages(const std::byte* begin, uint64_t size) const {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto from = (reinterpret_cast<uintptr_t>(begin) + page - 1) / page * page;
  const auto to = (reinterpret_cast<uintptr_t>(begin) + size) / page * page;
  if (from < to) (void)madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
}

}  // namespace kvasir

// Every member is written in the zip64 form with its size and checksum behind it (a data
// descriptor): sizes past 4 GiB take the same path as small ones, and pipes can be written to.
#include <optional>

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/files/crc32.h"
#include "core/files/npz.h"

namespace kvasir::npz {
namespace {

constexpr uint16_t kVersion = 45;           // the first with zip64
constexpr uint16_t kSizesBehind = 1U << 3;  // flag: a data descriptor follows
constexpr uint16_t kFirstOfJanuary1980 = 0x21;
constexpr uint32_t kIn64 = 0xFFFFFFFF;

std::string_view view(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Little-endian numbers, one after another.
class Record {
 public:
  Record& u16(uint64_t value) { return number(value, 2); }
  Record& u32(uint64_t value) { return number(value, 4); }
  Record& u64(uint64_t value) { return number(value, 8); }
  Record& text(std::string_view value) {
    bytes_ += value;
    return *this;
  }
  operator std::string_view() const { return bytes_; }  // NOLINT: what it is for

 private:
  Record& number(uint64_t value, int n_bytes) {
    for (int i = 0; i < n_bytes; ++i) bytes_ += static_cast<char>((value >> (8 * i)) & 0xFF);
    return *this;
  }
  std::string bytes_;
};

}  // namespace

Result<Writer> Writer::create(const std::string& path) {
  auto file = AtomicFile::create(path);
  if (!file) return std::move(file).error();
  return Writer(std::move(*file));
}

Status Writer::put(std::string_view bytes) {
  position_ += bytes.size();
  return file_.write(bytes);
}

Status Writer::begin(std::string_view name, npy::Element element, std::span<const int64_t> shape) {
  if (auto s = end_member(); !s) return s;
  std::optional<uint64_t> bytes = npy::element_bytes(element);
  for (const int64_t size : shape) {
    if (bytes)
      bytes = size < 0 ? std::nullopt : checked_multiply(*bytes, static_cast<uint64_t>(size));
  }
  if (!bytes) {
    return make_error(ErrorCode::invalid_argument, "array '{}' has more bytes than can be counted",
                      name);
  }
  members_.push_back({std::string(name) + ".npy", position_, 0, 0});
  const std::string& file_name = members_.back().name;
  if (auto s = put(Record()
                       .u32(0x04034B50)
                       .u16(kVersion)
                       .u16(kSizesBehind)
                       .u16(0)  // stored
                       .u16(0)
                       .u16(kFirstOfJanuary1980)
                       .u32(0)  // checksum: behind
                       .u32(kIn64)
                       .u32(kIn64)
                       .u16(file_name.size())
                       .u16(20)
                       .text(file_name)
                       .u16(1)  // zip64: 16 bytes, both sizes behind
                       .u16(16)
                       .u64(0)
                       .u64(0));
      !s)
    return s;
  data_begin_ = position_;
  const std::string header = npy::header(element, shape);
  bytes_missing_ = *bytes + header.size();
  return write({reinterpret_cast<const std::byte*>(header.data()), header.size()});
}

Status Writer::write(std::span<const std::byte> bytes) {
  if (members_.empty() || bytes.size() > bytes_missing_) {
    return make_error(ErrorCode::invalid_argument,
                      "{} bytes were given to an array that has room for {}", bytes.size(),
                      bytes_missing_);
  }
  bytes_missing_ -= bytes.size();
  members_.back().crc = crc32(bytes, members_.back().crc);
  return put(view(bytes));
}

Status Writer::end_member() {
  if (members_.empty()) return {};
  auto& member = members_.back();
  if (bytes_missing_ > 0) {
    return make_error(ErrorCode::invalid_argument, "'{}' lacks {} bytes", member.name,
                      bytes_missing_);
  }
  member.size = position_ - data_begin_;
  return put(Record().u32(0x08074B50).u32(member.crc).u64(member.size).u64(member.size));
}

Status Writer::finish() {
  if (auto s = end_member(); !s) return s;
  const uint64_t directory = position_;
  for (const auto& member : members_) {
    if (auto s = put(Record()
                         .u32(0x02014B50)
                         .u16(kVersion)
                         .u16(kVersion)
                         .u16(kSizesBehind)
                         .u16(0)
                         .u16(0)
                         .u16(kFirstOfJanuary1980)
                         .u32(member.crc)
                         .u32(kIn64)
                         .u32(kIn64)
                         .u16(member.name.size())
                         .u16(28)
                         .u16(0)  // comment
                         .u16(0)  // disk
                         .u16(0)
                         .u32(0)
                         .u32(kIn64)
                         .text(member.name)
                         .u16(1)  // zip64: 24 bytes
                         .u16(24)
                         .u64(member.size)
                         .u64(member.size)
                         .u64(member.offset));
        !s)
      return s;
  }
  const uint64_t end = position_;
  const uint64_t n = members_.size();
  Record record;
  record.u32(0x06064B50).u64(44).u16(kVersion).u16(kVersion).u32(0).u32(0).u64(n).u64(n);
  record.u64(end - directory).u64(directory);
  record.u32(0x07064B50).u32(0).u64(end).u32(1);
  record.u32(0x06054B50).u16(0).u16(0).u16(0xFFFF).u16(0xFFFF).u32(kIn64).u32(kIn64).u16(0);
  if (auto s = put(record); !s) return s;
  return file_.commit();
}

}  // namespace kvasir::npz

#include "core/files/npz.h"

#include <algorithm>
#include <optional>

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/files/crc32.h"

namespace kvasir::npz {
namespace {

constexpr uint32_t kEndSignature = 0x06054B50;
constexpr uint32_t kEnd64Signature = 0x06064B50;
constexpr uint32_t kLocator64Signature = 0x07064B50;
constexpr uint32_t kEntrySignature = 0x02014B50;
constexpr uint32_t kLocalSignature = 0x04034B50;
constexpr uint64_t kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20, kEntryBytes = 46,
                   kLocalBytes = 30, kMaxCommentBytes = 65535;
constexpr uint16_t kZip64Extra = 1;
constexpr uint32_t kIn64 = 0xFFFFFFFF;  ///< the value stands in the zip64 extra field
constexpr uint16_t kStored = 0, kEncrypted = 1;

/// Little-endian numbers of the archive; every offset is checked before it is read.
class Bytes {
 public:
  explicit Bytes(std::span<const std::byte> bytes) : bytes_(bytes) {}
  uint64_t size() const { return bytes_.size(); }
  bool has(uint64_t offset, uint64_t size) const {
    return offset <= bytes_.size() && size <= bytes_.size() - offset;
  }
  uint64_t number(uint64_t offset, int n_bytes) const {
    uint64_t value = 0;
    for (int i = 0; i < n_bytes; ++i)
      value |= static_cast<uint64_t>(bytes_[offset + static_cast<uint64_t>(i)]) << (8 * i);
    return value;
  }
  uint16_t u16(uint64_t offset) const { return static_cast<uint16_t>(number(offset, 2)); }
  uint32_t u32(uint64_t offset) const { return static_cast<uint32_t>(number(offset, 4)); }
  uint64_t u64(uint64_t offset) const { return number(offset, 8); }
  std::span<const std::byte> part(uint64_t offset, uint64_t size) const {
    return bytes_.subspan(offset, size);
  }
  std::string text(uint64_t offset, uint64_t size) const {
    return std::string(reinterpret_cast<const char*>(bytes_.data()) + offset, size);
  }

 private:
  std::span<const std::byte> bytes_;
};

/// Where the directory of members lies.
struct Directory {
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t n_entries = 0;
};

/// The last record that ends with the file, its comment included.
std::optional<uint64_t> find_end(const Bytes& bytes) {
  if (bytes.size() < kEndBytes) return std::nullopt;
  const uint64_t last = bytes.size() - kEndBytes;
  for (uint64_t back = 0; back <= std::min(last, kMaxCommentBytes); ++back) {
    if (bytes.u32(last - back) == kEndSignature && bytes.u16(last - back + 20) == back)
      return last - back;
  }
  return std::nullopt;
}

Result<Directory> find_directory(const Bytes& bytes) {
  const auto end = find_end(bytes);
  if (!end) {
    return make_error(ErrorCode::corrupt_file,
                      "not an .npz archive: there is no zip directory at its end");
  }
  Directory directory = {bytes.u32(*end + 16), bytes.u32(*end + 12), bytes.u16(*end + 10)};
  if (*end >= kLocator64Bytes && bytes.u32(*end - kLocator64Bytes) == kLocator64Signature) {
    const uint64_t at = bytes.u64(*end - kLocator64Bytes + 8);
    if (!bytes.has(at, kEnd64Bytes) || bytes.u32(at) != kEnd64Signature) {
      return make_error(ErrorCode::corrupt_file,
                        "the zip64 record at offset {} is not inside the {} bytes", at,
                        bytes.size());
    }
    directory = {bytes.u64(at + 48), bytes.u64(at + 40), bytes.u64(at + 32)};
  }
  if (!bytes.has(directory.offset, directory.size) ||
      directory.n_entries > directory.size / kEntryBytes) {
    return make_error(ErrorCode::corrupt_file,
                      "the zip directory ({} entries, {} bytes at offset {}) is not inside the {} "
                      "bytes",
                      directory.n_entries, directory.size, directory.offset, bytes.size());
  }
  return directory;
}

/// One entry of the directory as it is written there.
struct Entry {
  std::string name;
  uint16_t flags = 0, method = 0;
  uint32_t crc = 0;
  uint64_t packed_size = 0, size = 0, local_offset = 0;
};

/// Takes from the zip64 extra field what the entry itself had no room for. False: not there.
bool read_zip64(const Bytes& bytes, uint64_t extra, uint64_t extra_end, Entry& entry) {
  uint64_t* const wanted[] = {&entry.size, &entry.packed_size, &entry.local_offset};
  if (std::none_of(std::begin(wanted), std::end(wanted), [](auto* v) { return *v == kIn64; }))
    return true;
  while (extra_end - extra >= 4) {
    const uint16_t id = bytes.u16(extra);
    const uint64_t size = bytes.u16(extra + 2);
    extra += 4;
    if (size > extra_end - extra) return false;
    if (id != kZip64Extra) {
      extra += size;
      continue;
    }
    const uint64_t end = extra + size;
    for (uint64_t* value : wanted) {
      if (*value != kIn64) continue;
      if (end - extra < 8) return false;
      *value = bytes.u64(extra);
      extra += 8;
    }
    return true;
  }
  return false;
}

/// Reads the entry at `offset` and moves it past.
Result<Entry> read_entry(const Bytes& bytes, uint64_t& offset, uint64_t directory_end) {
  const auto broken = [&] {
    return make_error(ErrorCode::corrupt_file, "the zip directory is broken at offset {}", offset);
  };
  if (directory_end - offset < kEntryBytes || bytes.u32(offset) != kEntrySignature) return broken();
  Entry entry;
  entry.flags = bytes.u16(offset + 8);
  entry.method = bytes.u16(offset + 10);
  entry.crc = bytes.u32(offset + 16);
  entry.packed_size = bytes.u32(offset + 20);
  entry.size = bytes.u32(offset + 24);
  entry.local_offset = bytes.u32(offset + 42);
  const uint64_t name = bytes.u16(offset + 28), extra = bytes.u16(offset + 30),
                 comment = bytes.u16(offset + 32);
  if (directory_end - offset - kEntryBytes < name + extra + comment) return broken();
  const uint64_t extra_begin = offset + kEntryBytes + name;
  entry.name = bytes.text(offset + kEntryBytes, name);
  if (!read_zip64(bytes, extra_begin, extra_begin + extra, entry)) return broken();
  offset = extra_begin + extra + comment;
  return entry;
}

Result<Member> locate(const Bytes& bytes, Entry entry) {
  if ((entry.flags & kEncrypted) != 0)
    return make_error(ErrorCode::unsupported, "'{}' is encrypted", entry.name);
  if (entry.method != kStored) {
    return make_error(ErrorCode::unsupported,
                      "'{}' is compressed (method {}): write it with numpy.savez instead of "
                      "savez_compressed",
                      entry.name, entry.method);
  }
  if (!bytes.has(entry.local_offset, kLocalBytes) ||
      bytes.u32(entry.local_offset) != kLocalSignature) {
    return make_error(ErrorCode::corrupt_file,
                      "'{}' does not begin at offset {} as the zip "
                      "directory says",
                      entry.name, entry.local_offset);
  }
  const uint64_t data = entry.local_offset + kLocalBytes + bytes.u16(entry.local_offset + 26) +
                        bytes.u16(entry.local_offset + 28);
  if (entry.packed_size != entry.size || !bytes.has(data, entry.size)) {
    return make_error(ErrorCode::corrupt_file,
                      "'{}' ({} bytes at offset {}) is not inside the {} bytes", entry.name,
                      entry.size, data, bytes.size());
  }
  return Member{std::move(entry.name), bytes.part(data, entry.size), entry.crc};
}

}  // namespace

Result<Archive> Archive::parse(std::span<const std::byte> all) {
  const Bytes bytes(all);
  const auto directory = find_directory(bytes);
  if (!directory) return directory.error();
  Archive archive;
  uint64_t offset = directory->offset;
  const uint64_t end = directory->offset + directory->size;
  for (uint64_t i = 0; i < directory->n_entries; ++i) {
    auto entry = read_entry(bytes, offset, end);
    if (!entry) return std::move(entry).error();
    auto member = locate(bytes, std::move(*entry));
    if (!member) return std::move(member).error();
    archive.members_.push_back(std::move(*member));
  }
  // Sorted, so that two of one name are neighbours and any number of members takes n log n.
  auto& members = archive.members_;
  std::sort(members.begin(), members.end(),
            [](const Member& a, const Member& b) { return a.name < b.name; });
  const auto twice =
      std::adjacent_find(members.begin(), members.end(),
                         [](const Member& a, const Member& b) { return a.name == b.name; });
  if (twice != members.end())
    return make_error(ErrorCode::corrupt_file, "there are two members '{}'", twice->name);
  return archive;
}

Result<const Member*> Archive::find(std::string_view name) const {
  const std::string wanted = std::string(name) + ".npy";
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [&](const Member& m) { return m.name == wanted; });
  if (found != members_.end()) return &*found;
  constexpr size_t kNamesShown = 8;
  std::string names;
  for (size_t i = 0; i < std::min(members_.size(), kNamesShown); ++i)
    names += (i == 0 ? "'" : ", '") + members_[i].name + "'";
  if (members_.size() > kNamesShown) names += ", ...";
  return make_error(ErrorCode::not_found, "there is no array '{}' in it, only {}", name,
                    names.empty() ? "nothing" : names);
}

Result<npy::Array> Archive::array(std::string_view name) const {
  const auto member = find(name);
  if (!member) return member.error();
  return npy::parse((*member)->data, fmt::format("array '{}'", name));
}

Status Archive::check_sum(std::string_view name) const {
  const auto member = find(name);
  if (!member) return member.error();
  const uint32_t found = crc32((*member)->data);
  if (found == (*member)->crc) return {};
  return make_error(ErrorCode::corrupt_file,
                    "the bytes of array '{}' have the checksum {:08x}, not {:08x}: they were "
                    "changed or damaged",
                    name, found, (*member)->crc);
}

}  // namespace kvasir::npz

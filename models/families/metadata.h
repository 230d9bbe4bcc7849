// Reading a family's metadata keys: the first fault is kept, values are read as if there were none.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/files/gguf.h"

namespace kvasir {

/// Keys "<architecture>.<name>". After all reads, `fault()` says what was wrong first.
class Metadata {
 public:
  Metadata(const gguf::Header& header, std::string_view architecture)
      : header_(header), prefix_(std::string(architecture) + ".") {}

  bool has(std::string_view name) const { return header_.find(prefix_ + std::string(name)) != nullptr; }

  /// An integer in [least, most]; required.
  int64_t integer(std::string_view name, int64_t least, int64_t most) {
    return check(name, header_.get_int(key(name)), least, most);
  }
  int64_t integer_or(std::string_view name, int64_t fallback, int64_t least, int64_t most) {
    return check(name, header_.int_or(key(name), fallback), least, most);
  }
  /// A number in [least, most]; NaN is refused.
  double number(std::string_view name, double least, double most) {
    return check(name, header_.get_float(key(name)), least, most);
  }
  double number_or(std::string_view name, double fallback, double least, double most) {
    return check(name, header_.float_or(key(name), fallback), least, most);
  }
  std::string text_or(std::string_view name, std::string_view fallback) {
    auto value = header_.string_or(key(name), fallback);
    if (value) return std::string(*value);
    fail(std::move(value).error());
    return std::string(fallback);
  }
  void fail(Error error) {
    if (!fault_) fault_ = std::move(error);
  }
  const std::optional<Error>& fault() const { return fault_; }
  const gguf::Header& header() const { return header_; }
  std::string key(std::string_view name) const { return prefix_ + std::string(name); }

 private:
  template <class T>
  T check(std::string_view name, Result<T> value, T least, T most) {
    if (!value) {
      fail(std::move(value).error());
      return least;
    }
    if (!(*value >= least && *value <= most)) {
      fail(make_error(ErrorCode::corrupt_file, "key '{}' is {}, but must be from {} to {}",
                      key(name), *value, least, most));
      return least;
    }
    return *value;
  }

  const gguf::Header& header_;
  std::string prefix_;
  std::optional<Error> fault_;
};

}  // namespace kvasir

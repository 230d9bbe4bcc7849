#include "core/files/npy.h"

#include <iterator>
#include <optional>

#include "core/base/checked.h"
#include "core/base/error.h"

namespace kvasir::npy {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kMaxDimensions = 8;

struct ElementTraits {
  Element element;
  std::string_view descr;
  std::string_view name;
  size_t bytes;
};
constexpr ElementTraits kElements[] = {{Element::f16, "<f2", "float16", 2},
                                       {Element::f32, "<f4", "float32", 4},
                                       {Element::i32, "<i4", "int32", 4}};

const ElementTraits& traits(Element element) {
  return kElements[static_cast<size_t>(element)];
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "(";
  for (const int64_t size : shape) fmt::format_to(std::back_inserter(text), "{}, ", size);
  if (shape.size() > 1) text.resize(text.size() - 2);
  if (shape.size() == 1) text.pop_back();
  return text + ")";
}

/// The header's Python dictionary, read left to right: three keys, values of three kinds.
class Dictionary {
 public:
  explicit Dictionary(std::string_view text) : rest_(text) {}

  /// False when it is not one, or lacks a key, or has one twice.
  bool read() {
    if (!take('{')) return false;
    while (!take('}')) {
      const auto key = string();
      if (!key || !take(':') || !value(*key)) return false;
      if (!take(',') && !peek('}')) return false;
    }
    skip_spaces();
    return rest_.empty() && has_descr_ && has_order_ && has_shape_;
  }

  std::string_view descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;

 private:
  bool value(std::string_view key) {
    if (key == "descr" && !has_descr_) {
      const auto text = string();
      if (text) descr = *text;
      return has_descr_ = text.has_value();
    }
    if (key == "fortran_order" && !has_order_) {
      fortran_order = word("True");
      return has_order_ = fortran_order || word("False");
    }
    return key == "shape" && !has_shape_ && (has_shape_ = tuple());
  }

  void skip_spaces() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }
  bool peek(char c) {
    skip_spaces();
    return !rest_.empty() && rest_[0] == c;
  }
  bool take(char c) {
    if (!peek(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool word(std::string_view text) {
    skip_spaces();
    if (rest_.substr(0, text.size()) != text) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  std::optional<std::string_view> string() {
    const char quote = peek('"') ? '"' : '\'';
    if (!take(quote)) return std::nullopt;
    const size_t end = rest_.find(quote);
    if (end == std::string_view::npos) return std::nullopt;
    const auto text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return text;
  }
  bool tuple() {
    if (!take('(')) return false;
    while (!take(')')) {
      const auto size = number();
      if (!size || shape.size() == kMaxDimensions) return false;
      shape.push_back(*size);
      if (!take(',') && !peek(')')) return false;
    }
    return true;
  }
  std::optional<int64_t> number() {
    skip_spaces();
    int64_t value = 0;
    size_t n = 0;
    for (; n < rest_.size() && rest_[n] >= '0' && rest_[n] <= '9'; ++n) {
      if (value > (INT64_MAX - 9) / 10) return std::nullopt;
      value = value * 10 + (rest_[n] - '0');
    }
    rest_.remove_prefix(n);
    if (n == 0) return std::nullopt;
    return value;
  }

  std::string_view rest_;
  bool has_descr_ = false, has_order_ = false, has_shape_ = false;
};

}  // namespace

std::string_view element_name(Element element) {
  return traits(element).name;
}
size_t element_bytes(Element element) {
  return traits(element).bytes;
}

std::string header(Element element, std::span<const int64_t> shape) {
  std::string dictionary = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
                                       traits(element).descr, shape_text(shape));
  // Ends with a line break so that data starts at a multiple of 64.
  const size_t before = kMagic.size() + 4;
  const size_t total = (before + dictionary.size() + 1 + 63) / 64 * 64;
  dictionary.resize(total - before - 1, ' ');
  dictionary += '\n';
  std::string text(kMagic);
  text += {'\x01', '\x00'};
  text += static_cast<char>(dictionary.size() & 0xFF);
  text += static_cast<char>(dictionary.size() >> 8);
  return text + dictionary;
}

Result<Array> parse(std::span<const std::byte> bytes, std::string_view name) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto byte = [&](size_t i) { return static_cast<uint64_t>(bytes[i]); };
  if (text.size() < 12 || text.substr(0, kMagic.size()) != kMagic)
    return make_error(ErrorCode::corrupt_file, "{} is not a NumPy array", name);
  const uint64_t version = byte(6);
  if (version < 1 || version > 3)
    return make_error(ErrorCode::unsupported, "{} has version {} of NumPy's format", name, version);
  const size_t begin = version == 1 ? 10 : 12;
  const uint64_t size = version == 1 ? byte(8) | byte(9) << 8
                                     : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  if (size > text.size() - begin)
    return make_error(ErrorCode::corrupt_file, "{} ends within its header of {} bytes", name, size);
  Dictionary dictionary(text.substr(begin, size));
  if (!dictionary.read()) {
    return make_error(ErrorCode::corrupt_file,
                      "{} has a header that is not one of descr, fortran_order and a shape of at "
                      "most {} dimensions",
                      name, kMaxDimensions);
  }
  Array array;
  bool known = false;
  for (const auto& one : kElements) {
    if (dictionary.descr != one.descr) continue;
    array.element = one.element;
    known = true;
  }
  if (!known) {
    return make_error(
        ErrorCode::unsupported,
        "{} has elements of type '{}', not float32 (<f4), float16 (<f2) or int32 (<i4)", name,
        dictionary.descr.substr(0, 40));
  }
  array.shape = std::move(dictionary.shape);
  if (dictionary.fortran_order && array.shape.size() > 1) {
    return make_error(ErrorCode::unsupported,
                      "{} is in Fortran order (numpy.ascontiguousarray changes that)", name);
  }
  array.data = bytes.subspan(begin + size);
  std::optional<uint64_t> needed = element_bytes(array.element);
  for (const int64_t dimension : array.shape) {
    if (needed) needed = checked_multiply(*needed, static_cast<uint64_t>(dimension));
  }
  if (!needed || *needed != array.data.size()) {
    return make_error(ErrorCode::corrupt_file,
                      "{} has {} bytes of data, not what shape {} of {} needs", name,
                      array.data.size(), shape_text(array.shape), element_name(array.element));
  }
  return array;
}

}  // namespace kvasir::npy

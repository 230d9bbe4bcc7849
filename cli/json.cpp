#include "cli/json.h"

#include "cli/options.h"
#include "core/base/error.h"

namespace kvasir::cli {

std::string to_text(const Json& json, int indent) {
  const std::string text = json.dump(indent, ' ', false, Json::error_handler_t::replace);
  // nlohmann-json escapes what is below 0x20. DEL and C1 (U+0080 to U+009F, in UTF-8 C2 80 to
  // C2 9F) can stand only inside strings, where an escape means the same.
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    if (byte == 0x7F) {
      out += "\\u007f";
    } else if (byte == 0xC2 && next < 0xA0) {
      out += fmt::format("\\u{:04x}", next);
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string brief(const Json& json) {
  // Not dumped: a hostile list may be nested deeper than the stack.
  if (json.is_structured()) return json.is_array() ? "a list" : "an object";
  const std::string text = to_text(json);
  return text.size() <= 40 ? text : text.substr(0, 37) + "...";
}

Result<Json> read_json(const std::string& path) {
  auto text = read_text(path);
  if (!text) return std::move(text).error();
  try {
    return Json::parse(*text);
  } catch (const Json::exception& error) {
    const std::string_view what = error.what();
    const auto after = what.find("] ");  // the exception's own number
    return make_error(ErrorCode::invalid_argument, "'{}' is not JSON: {}", path,
                      after == std::string_view::npos ? what : what.substr(after + 2));
  }
}

}  // namespace kvasir::cli

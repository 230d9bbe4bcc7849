#include "cli/messages.h"

#include "cli/options.h"
#include "core/base/error.h"

namespace kvasir::cli {

Result<std::vector<ChatMessage>> messages_from_json(const Json& json, const std::string& where) {
  if (!json.is_array() || json.empty())
    return make_error(ErrorCode::invalid_argument, "{} is not a list of messages", where);
  std::vector<ChatMessage> messages;
  for (size_t i = 0; i < json.size(); ++i) {
    const Json& item = json[i];
    if (!item.is_object())
      return make_error(ErrorCode::invalid_argument, "message {} in {} is not an object", i, where);
    for (const char* key : {"role", "content"}) {
      if (!item.contains(key) || !item[key].is_string()) {
        return make_error(ErrorCode::invalid_argument, "message {} in {} has no text '{}'", i, where, key);
      }
    }
    for (const auto& [key, value] : item.items()) {
      if (key != "role" && key != "content") {
        return make_error(ErrorCode::invalid_argument, "message {} in {} has the unknown key '{}'", i,
                          where, key);
      }
    }
    messages.push_back({item["role"].get<std::string>(), item["content"].get<std::string>()});
  }
  return messages;
}

Result<std::vector<ChatMessage>> read_messages(const std::string& path) {
  auto text = read_text(path);
  if (!text) return std::move(text).error();
  const Json json = Json::parse(*text, nullptr, false);
  if (json.is_discarded())
    return make_error(ErrorCode::invalid_argument, "'{}' is not JSON", path);
  return messages_from_json(json, "'" + path + "'");
}

Json messages_to_json(const std::vector<ChatMessage>& messages) {
  Json all = Json::array();
  for (const auto& m : messages) all.push_back({{"role", m.role}, {"content", m.content}});
  return all;
}

}  // namespace kvasir::cli

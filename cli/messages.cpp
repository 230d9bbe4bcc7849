#include "cli/messages.h"

#include "core/base/error.h"

namespace kvasir::cli {
namespace {

Result<ChatMessage> message_from_json(const Json& json, size_t i, const std::string& where) {
  if (!json.is_object())
    return make_error(ErrorCode::invalid_argument, "message {} in {} is {}, not an object", i,
                      where, brief(json));
  for (const auto& [key, value] : json.items()) {
    if (key != "role" && key != "content") {
      return make_error(ErrorCode::invalid_argument, "message {} in {} has the unknown key '{}'", i,
                        where, key);
    }
    if (!value.is_string()) {
      return make_error(ErrorCode::invalid_argument, "message {} in {}: '{}' is {}, not a text", i,
                        where, key, brief(value));
    }
  }
  for (const char* key : {"role", "content"}) {
    if (!json.contains(key))
      return make_error(ErrorCode::invalid_argument, "message {} in {} has no '{}'", i, where, key);
  }
  if (json["role"].get_ref<const std::string&>().empty())
    return make_error(ErrorCode::invalid_argument, "message {} in {}: 'role' is empty", i, where);
  return ChatMessage{json["role"].get<std::string>(), json["content"].get<std::string>()};
}

}  // namespace

Result<std::vector<ChatMessage>> messages_from_json(const Json& json, const std::string& where) {
  if (!json.is_array())
    return make_error(ErrorCode::invalid_argument, "{} is {}, not a list of messages", where,
                      brief(json));
  std::vector<ChatMessage> messages;
  for (size_t i = 0; i < json.size(); ++i) {
    auto message = message_from_json(json[i], i, where);
    if (!message) return std::move(message).error();
    messages.push_back(std::move(*message));
  }
  return messages;
}

Result<std::vector<ChatMessage>> read_messages(const std::string& path) {
  auto json = read_json(path);
  if (!json) return std::move(json).error();
  auto messages = messages_from_json(*json, "'" + path + "'");
  if (messages && messages->empty())
    return make_error(ErrorCode::invalid_argument, "'{}' holds no messages", path);
  return messages;
}

Json messages_to_json(const std::vector<ChatMessage>& messages) {
  Json all = Json::array();
  for (const auto& m : messages) all.push_back({{"role", m.role}, {"content", m.content}});
  return all;
}

}  // namespace kvasir::cli

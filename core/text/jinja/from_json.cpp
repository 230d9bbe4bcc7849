#include "core/text/jinja/from_json.h"

#include <algorithm>
#include <array>

#include "core/text/utf8.h"

namespace kvasir::jinja {
namespace {

using Json = nlohmann::ordered_json;

/// Templates turn these into control tokens ('<|' + role + '|>'), so they count as markup. None of
/// them is part of a control token that a person should not be able to ask for; any other role
/// stays content.
constexpr std::string_view kKnownRoles[] = {
    "assistant",   "bot",      "context",       "critic", "developer", "document", "documents",
    "environment", "function", "gpt",           "human",  "ipython",   "model",    "observation",
    "system",      "tool",     "tool_response", "tools",  "user"};

constexpr std::string_view kReasoningNames[] = {"reasoning_content", "thinking", "reasoning"};

Value string_value(Context& context, const std::string& text, std::string_view name,
                   bool is_content) {
  if (const auto at = find_invalid_utf8(text)) {
    context.fail("text in '{}' is not valid UTF-8 at byte {}", name, *at);
    return {};
  }
  TextBuilder out(context);
  out.reserve(text.size());
  out.append(text, is_content);
  return make_string(out);
}

Value number_value(Context& context, const Json& json, std::string_view name) {
  if (json.is_number_float()) return Value::real(json.get<double>());
  if (json.is_number_unsigned() && json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
    context.fail("an integer in '{}' is larger than 64 bits", name);
    return {};
  }
  return Value::integer(json.get<int64_t>());
}

Value object_value(Context& context, const Json& json, std::string_view name) {
  DictBuilder dict(context);
  for (const auto& [key, value] : json.items()) {
    if (context.failed()) break;
    const Value key_value = string_value(context, key, name, true);
    dict.set(key_value, value_from_json(context, value, name));
  }
  return dict.finish();
}

Value role_value(Context& context, const Json& role) {
  const auto& text = role.get_ref<const std::string&>();
  const bool known =
      std::find(std::begin(kKnownRoles), std::end(kKnownRoles), text) != std::end(kKnownRoles);
  return string_value(context, text, "role", !known);
}

const Json* reasoning_of(const Json& message) {
  for (const std::string_view name : kReasoningNames) {
    const auto found = message.find(name);
    if (found != message.end() && !found->is_null()) return &*found;
  }
  return nullptr;
}

Value message_value(Context& context, const Json& message) {
  if (!message.is_object()) {
    context.fail("a message is not an object");
    return {};
  }
  DictBuilder dict(context);
  const Json* reasoning = reasoning_of(message);
  const auto set = [&](std::string_view key, const Json& value) {
    const Value key_value = string_value(context, std::string(key), "messages", true);
    dict.set(key_value, key == "role" && value.is_string()
                            ? role_value(context, value)
                            : value_from_json(context, value, "messages"));
  };
  if (reasoning != nullptr) set("thinking", *reasoning);
  for (const auto& [key, value] : message.items()) {
    if (!value.is_null() && !context.failed()) set(key, value);
  }
  if (reasoning != nullptr) set("reasoning_content", *reasoning);
  return dict.finish();
}

}  // namespace

Value value_from_json(Context& context, const Json& json, std::string_view name) {
  const Nested nested(context);
  if (!nested || !context.step()) return {};
  switch (json.type()) {
    case Json::value_t::boolean:
      return Value::boolean(json.get<bool>());
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
    case Json::value_t::number_float:
      return number_value(context, json, name);
    case Json::value_t::string:
      return string_value(context, json.get_ref<const std::string&>(), name, true);
    case Json::value_t::array: {
      std::vector<Value> items;
      if (!take_items(context, json.size())) return {};
      items.reserve(json.size());
      for (const Json& item : json) items.push_back(value_from_json(context, item, name));
      return make_list(context, std::move(items));
    }
    case Json::value_t::object:
      return object_value(context, json, name);
    default:
      return Value::none();
  }
}

Value messages_from_json(Context& context, const Json& messages) {
  std::vector<Value> items;
  if (!take_items(context, messages.size())) return {};
  items.reserve(messages.size());
  for (const Json& message : messages) {
    items.push_back(message_value(context, message));
    if (context.failed()) return {};
  }
  return make_list(context, std::move(items));
}

}  // namespace kvasir::jinja

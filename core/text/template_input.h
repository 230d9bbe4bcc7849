// Everything that a chat template can be given.
#pragma once

#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace kvasir {

/// The variables of one rendering, as Hugging Face's apply_chat_template sets them. Keys keep their
/// order, since templates print them (tojson, items).
struct TemplateInput {
  /// A list of objects with "role" and "content" (a string or a list of parts), and whatever else
  /// the template knows: "tool_calls", "reasoning_content", ... Keys whose value is null are
  /// dropped; "reasoning_content", "thinking" and "reasoning" stand in for each other.
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  nlohmann::ordered_json tools = nullptr;      ///< a list of JSON schemas, or null
  nlohmann::ordered_json documents = nullptr;  ///< a list of objects, or null
  /// Further variables by name ("enable_thinking"); they cannot replace the others.
  nlohmann::ordered_json variables = nlohmann::ordered_json::object();
  bool add_generation_prompt = false;
  std::string bos_token;
  std::string eos_token;
  /// What strftime_now shows; local time when empty.
  std::function<std::tm()> clock;
};

}  // namespace kvasir

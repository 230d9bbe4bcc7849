// Rendering a template with what a JSON object gives.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/text/chat_template.h"
#include "core/text/template_input.h"

namespace kvasir::test {

using Json = nlohmann::ordered_json;

/// Saturday 2024-02-03 16:05:09.
inline std::tm stopped_clock() {
  std::tm time = {};
  time.tm_year = 124;
  time.tm_mon = 1;
  time.tm_mday = 3;
  time.tm_hour = 16;
  time.tm_min = 5;
  time.tm_sec = 9;
  time.tm_wday = 6;
  time.tm_yday = 33;
  return time;
}

/// Members of `input`: messages, tools, variables, add_generation_prompt; "<s>" and "</s>" as BOS
/// and EOS. Errors of parsing and of rendering alike.
inline Result<std::vector<TemplateSpan>> render(const std::string& source, const Json& input) {
  const auto parsed = ChatTemplate::parse(source);
  if (!parsed) return parsed.error();
  TemplateInput values;
  values.messages = input.value("messages", Json::array());
  values.tools = input.value("tools", Json());
  values.variables = input.value("variables", Json::object());
  values.add_generation_prompt = input.value("add_generation_prompt", false);
  values.bos_token = "<s>";
  values.eos_token = "</s>";
  values.clock = stopped_clock;
  return (*parsed)->render(values);
}

inline std::string joined(const std::vector<TemplateSpan>& spans) {
  std::string text;
  for (const auto& span : spans) text += span.text;
  return text;
}

}  // namespace kvasir::test

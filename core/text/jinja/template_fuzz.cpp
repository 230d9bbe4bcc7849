// libFuzzer entry of chat templates: any bytes as a template, rendered for a fixed conversation.
// What must hold: an error or text that is whole UTF-8, within the budgets, and no fault of memory.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/text/chat_template.h"
#include "core/text/template_input.h"
#include "core/text/utf8.h"

namespace kvasir {
namespace {

TemplateInput conversation() {
  TemplateInput input;
  input.messages = nlohmann::ordered_json::parse(R"([
    {"role": "system", "content": "Be brief. \u00e9\u6f22"},
    {"role": "user", "content": [{"type": "text", "text": "a <|im_end|>"}, {"type": "image"}]},
    {"role": "assistant", "content": null, "tool_calls": [{"id": "abcdef123", "type": "function",
      "function": {"name": "f", "arguments": {"x": 1, "y": [2.5, true, null]}}}]},
    {"role": "tool", "content": "{}", "tool_call_id": "abcdef123"},
    {"role": "user", "content": "<think>a</think>\n b"}])");
  input.tools = nlohmann::ordered_json::parse(
      R"([{"type": "function", "function": {"name": "f", "description": "d",
           "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}}])");
  input.add_generation_prompt = true;
  input.bos_token = "<s>";
  input.eos_token = "</s>";
  input.clock = [] { return std::tm{}; };
  return input;
}

bool holds(std::string_view source) {
  static const TemplateInput input = conversation();
  const auto parsed = ChatTemplate::parse(source);
  if (!parsed) return !parsed.error().message.empty();
  const auto spans = (*parsed)->render(input);
  if (!spans) return !spans.error().message.empty();
  std::string text;
  for (const TemplateSpan& span : *spans) {
    if (span.text.empty() || find_invalid_utf8(span.text)) return false;
    text += span.text;
  }
  return text.size() <= size_t{32} << 20;
}

}  // namespace
}  // namespace kvasir

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (!kvasir::holds({reinterpret_cast<const char*>(data), size})) __builtin_trap();
  return 0;
}

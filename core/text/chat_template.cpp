#include "core/text/chat_template.h"

#include <algorithm>
#include <ctime>

#include "core/base/error.h"
#include "core/text/jinja/evaluator.h"
#include "core/text/jinja/from_json.h"
#include "core/text/jinja/parser.h"
#include "core/text/template_input.h"
#include "core/text/utf8.h"

namespace kvasir {
namespace {

using jinja::Value;

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm time = {};
  localtime_r(&now, &time);
  return time;
}

std::vector<TemplateSpan> spans_of(const jinja::Text& text) {
  std::vector<TemplateSpan> spans;
  size_t at = 0;
  const auto add = [&](size_t end, bool is_content) {
    if (end > at) spans.push_back({text.bytes.substr(at, end - at), is_content});
    at = end;
  };
  for (const jinja::ByteRange& range : text.content) {
    add(range.begin, false);
    add(range.end, true);
  }
  add(text.bytes.size(), false);
  return spans;
}

class JinjaTemplate final : public ChatTemplate {
 public:
  explicit JinjaTemplate(std::shared_ptr<const jinja::Ast> ast) : ast_(std::move(ast)) {}

  Result<std::vector<TemplateSpan>> render(const std::vector<ChatMessage>& messages,
                                           bool add_generation_prompt, std::string_view bos_token,
                                           std::string_view eos_token) const override {
    TemplateInput input;
    for (const ChatMessage& message : messages) {
      nlohmann::ordered_json object;
      object["role"] = message.role;
      object["content"] = message.content;
      input.messages.push_back(std::move(object));
    }
    input.add_generation_prompt = add_generation_prompt;
    input.bos_token = bos_token;
    input.eos_token = eos_token;
    return render(input);
  }

  Result<std::vector<TemplateSpan>> render(const TemplateInput& input) const override {
    jinja::Context context{jinja::Limits{}};
    jinja::Evaluator evaluator(*ast_, context, input.clock ? input.clock : local_time);
    set_variables(evaluator, input);
    jinja::TextBuilder out(context);
    if (!context.failed()) evaluator.run(out);
    if (context.failed()) return context.error();
    return spans_of(out.text());
  }

 private:
  static void set_variables(jinja::Evaluator& evaluator, const TemplateInput& input) {
    jinja::Context& context = evaluator.context();
    const auto set_json = [&](std::string_view name, const nlohmann::ordered_json& json) {
      if (evaluator.uses(name)) {
        evaluator.set_variable(name, jinja::value_from_json(context, json, name));
      }
    };
    for (const auto& [name, value] : input.variables.items()) set_json(name, value);
    if (!input.messages.is_array()) {
      context.fail("the messages are not a list");
      return;
    }
    evaluator.set_variable("messages", jinja::messages_from_json(context, input.messages));
    set_json("tools", input.tools);
    set_json("documents", input.documents);
    evaluator.set_variable("add_generation_prompt", Value::boolean(input.add_generation_prompt));
    evaluator.set_variable("bos_token", jinja::make_markup(context, input.bos_token));
    evaluator.set_variable("eos_token", jinja::make_markup(context, input.eos_token));
  }

  std::shared_ptr<const jinja::Ast> ast_;
};

}  // namespace

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::parse(std::string_view source) {
  if (const auto at = find_invalid_utf8(source)) {
    return make_error(ErrorCode::invalid_argument, "byte {} is not valid UTF-8", *at);
  }
  auto ast = jinja::parse_template(source);
  if (!ast) return std::move(ast).error();
  return std::unique_ptr<ChatTemplate>(std::make_unique<JinjaTemplate>(std::move(*ast)));
}

}  // namespace kvasir

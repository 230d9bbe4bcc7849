// Chat templates: a conversation to the text a model was trained to see.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/tokenizer.h"
#include "kvasir/result.h"

namespace kvasir {

struct ChatMessage {
  std::string role;     ///< "system", "user", "assistant", ...
  std::string content;  ///< UTF-8
};

/// A piece of rendered text. Markup was written by the template and may become control tokens;
/// content came from a person or a model and never does.
struct TemplateSpan {
  std::string text;
  bool is_content = false;
};

/// A parsed template. Immutable, thread-safe.
class ChatTemplate {
 public:
  /// Errors name the line and what is wrong with it.
  static Result<std::unique_ptr<ChatTemplate>> parse(std::string_view source);
  virtual ~ChatTemplate() = default;

  /// Renders with messages, add_generation_prompt, bos_token and eos_token set, as Hugging Face's
  /// apply_chat_template does. Budgeted in steps, memory and depth; the error names what ran out,
  /// or carries the template's own raise_exception message.
  virtual Result<std::vector<TemplateSpan>> render(const std::vector<ChatMessage>& messages,
                                                   bool add_generation_prompt,
                                                   std::string_view bos_token,
                                                   std::string_view eos_token) const = 0;
};

/// Ids of a rendered conversation: markup is parsed for control tokens, content is not.
Result<std::vector<TokenId>> tokenize_spans(const Tokenizer& tokenizer,
                                            const std::vector<TemplateSpan>& spans);

}  // namespace kvasir

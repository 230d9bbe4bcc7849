// Chat templates: a conversation to the text a model was trained to see.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/marked_tokens.h"
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

struct TemplateInput;  // core/text/template_input.h

/// A parsed Jinja template with jinja2's meaning as Hugging Face sets it up (immutable sandbox,
/// trim_blocks, lstrip_blocks, loop controls). Immutable, thread-safe.
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

  /// The same with everything a template can be given: tools, tool calls, parts of content. Strings
  /// of `input` are content, except bos_token, eos_token and the roles that templates are written
  /// for ("user", ...): templates make control tokens of those. Text that is not UTF-8 is an error.
  virtual Result<std::vector<TemplateSpan>> render(const TemplateInput& input) const = 0;
};

/// Turns rendered conversations into ids. Builds the table of control tokens once; immutable and
/// thread-safe. The tokenizer must outlive it.
class ChatTokenizer {
 public:
  explicit ChatTokenizer(const Tokenizer& tokenizer);

  /// Control tokens are looked for in markup only (adjacent markup spans count as one), the
  /// longest at each place; what lies between them is encoded whole, markup and content together,
  /// so that merges cross the spans' borders. The ids are those of the joined text parsed for
  /// control tokens whenever no control token's spelling touches content.
  Result<std::vector<TokenId>> encode(const std::vector<TemplateSpan>& spans) const;

 private:
  const Tokenizer& tokenizer_;
  MarkedTokens added_;  // control and user-defined tokens
};

/// Ids of a rendered conversation: markup is parsed for control tokens, content is not.
Result<std::vector<TokenId>> tokenize_spans(const Tokenizer& tokenizer,
                                            const std::vector<TemplateSpan>& spans);

}  // namespace kvasir

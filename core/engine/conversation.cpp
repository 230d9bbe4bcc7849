#include "core/engine/conversation.h"

#include <algorithm>

#include "core/base/error.h"

namespace kvasir {

Result<std::vector<TokenId>> conversation_prompt(const Tokenizer& tokenizer,
                                                 const ChatTemplate& chat_template,
                                                 const std::vector<ChatMessage>& messages) {
  const auto text_of = [&](std::optional<TokenId> id) {
    return id ? tokenizer.token_text(*id) : std::string_view();
  };
  auto spans =
      chat_template.render(messages, true, text_of(tokenizer.bos()), text_of(tokenizer.eos()));
  if (!spans) return std::move(spans).error();
  auto ids = tokenize_spans(tokenizer, *spans);
  if (ids && ids->empty()) {
    return make_error(ErrorCode::invalid_argument,
                      "the model's chat template gives no text for these messages");
  }
  return ids;
}

Result<std::vector<TokenId>> Conversation::prompt() const {
  return conversation_prompt(tokenizer_, template_, messages_);
}

/// `asked` are the messages up to the question; they become ours only when it was answered.
Result<Generation> Conversation::answer(std::vector<ChatMessage> asked,
                                        const GenerateOptions& options,
                                        const GenerateCallbacks& callbacks,
                                        const CancelToken* cancel) {
  auto ids = conversation_prompt(tokenizer_, template_, asked);
  if (!ids) return std::move(ids).error();
  auto generation = generate(session_, tokenizer_, *ids, options, callbacks, cancel);
  if (!generation) return generation;
  asked.push_back({"assistant", generation->text});
  messages_ = std::move(asked);
  return generation;
}

Result<Generation> Conversation::send(std::string text, const GenerateOptions& options,
                                      const GenerateCallbacks& callbacks,
                                      const CancelToken* cancel) {
  auto asked = messages_;
  asked.push_back({"user", std::move(text)});
  return answer(std::move(asked), options, callbacks, cancel);
}

Result<Generation> Conversation::regenerate(const GenerateOptions& options,
                                            const GenerateCallbacks& callbacks,
                                            const CancelToken* cancel) {
  if (messages_.empty() || messages_.back().role != "assistant")
    return make_error(ErrorCode::invalid_argument, "there is no answer to give again");
  auto asked = messages_;
  asked.pop_back();
  return answer(std::move(asked), options, callbacks, cancel);
}

bool Conversation::undo() {
  const auto last_user = std::find_if(messages_.rbegin(), messages_.rend(),
                                      [](const auto& m) { return m.role == "user"; });
  if (last_user == messages_.rend()) return false;
  messages_.erase(std::prev(last_user.base()), messages_.end());
  return true;
}

void Conversation::clear() {
  std::erase_if(messages_, [](const auto& m) { return m.role != "system"; });
}

void Conversation::set_system(std::string text) {
  std::erase_if(messages_, [](const auto& m) { return m.role == "system"; });
  if (!text.empty()) messages_.insert(messages_.begin(), {"system", std::move(text)});
}

}  // namespace kvasir

#include "core/engine/conversation.h"

#include <algorithm>

#include "core/base/error.h"

namespace kvasir {

Result<std::vector<TokenId>> Conversation::prompt() const {
  const auto text_of = [&](std::optional<TokenId> id) {
    return id ? tokenizer_.token_text(*id) : std::string_view();
  };
  auto spans = template_.render(messages_, true, text_of(tokenizer_.bos()), text_of(tokenizer_.eos()));
  if (!spans) return std::move(spans).error();
  return tokenize_spans(tokenizer_, *spans);
}

Result<Generation> Conversation::answer(const GenerateOptions& options,
                                        const GenerateCallbacks& callbacks,
                                        const CancelToken* cancel) {
  auto ids = prompt();
  if (!ids) return std::move(ids).error();
  auto generation = generate(session_, tokenizer_, *ids, options, callbacks, cancel);
  if (generation) messages_.push_back({"assistant", generation->text});
  return generation;
}

Result<Generation> Conversation::send(std::string text, const GenerateOptions& options,
                                      const GenerateCallbacks& callbacks,
                                      const CancelToken* cancel) {
  messages_.push_back({"user", std::move(text)});
  auto generation = answer(options, callbacks, cancel);
  if (!generation) messages_.pop_back();
  return generation;
}

Result<Generation> Conversation::regenerate(const GenerateOptions& options,
                                            const GenerateCallbacks& callbacks,
                                            const CancelToken* cancel) {
  if (messages_.empty() || messages_.back().role != "assistant")
    return make_error(ErrorCode::invalid_argument, "there is no answer to give again");
  ChatMessage last = std::move(messages_.back());
  messages_.pop_back();
  auto generation = answer(options, callbacks, cancel);
  if (!generation) messages_.push_back(std::move(last));
  return generation;
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

// A conversation: messages in, answers out, the KV store reused from turn to turn.
#pragma once

#include <string>
#include <vector>

#include "core/engine/generate.h"
#include "core/text/chat_template.h"

namespace kvasir {

/// What is evaluated is a function of the messages alone: they are rendered by the template and
/// tokenised anew for every answer, and the session keeps the longest common prefix with what it
/// holds. So an answer is the same whether the turns before it were given here or loaded from a
/// file. (Keeping the sampled ids of earlier answers instead would reuse a few tokens more where a
/// model spelled a word unusually, and give another answer than a cold run.) Not thread-safe.
class Conversation {
 public:
  /// All three must outlive the conversation.
  Conversation(Session& session, const Tokenizer& tokenizer, const ChatTemplate& chat_template)
      : session_(session), tokenizer_(tokenizer), template_(chat_template) {}

  /// Adds a user message and answers it. A cancelled answer stays as far as it came, an empty one
  /// too (it can be given again). When this fails (too long, the template refuses, a callback
  /// throws), the messages are as before.
  Result<Generation> send(std::string text, const GenerateOptions& options,
                          const GenerateCallbacks& callbacks = {},
                          const CancelToken* cancel = nullptr);

  /// Drops the last answer and gives another (with another seed it may differ). invalid_argument
  /// when there is none; when this fails, the old answer stays.
  Result<Generation> regenerate(const GenerateOptions& options,
                                const GenerateCallbacks& callbacks = {},
                                const CancelToken* cancel = nullptr);

  /// Removes the last user message and everything after it; false when there is none.
  bool undo();
  /// Removes everything but the system message.
  void clear();
  /// Replaces the system message. Empty text: none.
  void set_system(std::string text);

  const std::vector<ChatMessage>& messages() const { return messages_; }
  void set_messages(std::vector<ChatMessage> messages) { messages_ = std::move(messages); }

  /// The ids that an answer to the messages would start from.
  Result<std::vector<TokenId>> prompt() const;

 private:
  Result<Generation> answer(std::vector<ChatMessage> asked, const GenerateOptions& options,
                            const GenerateCallbacks& callbacks, const CancelToken* cancel);

  Session& session_;
  const Tokenizer& tokenizer_;
  const ChatTemplate& template_;
  std::vector<ChatMessage> messages_;
};

/// The ids that an answer to `messages` starts from.
Result<std::vector<TokenId>> conversation_prompt(const Tokenizer& tokenizer,
                                                 const ChatTemplate& chat_template,
                                                 const std::vector<ChatMessage>& messages);

}  // namespace kvasir

// Kvasir for programs that embed it: load a model, talk with it, stream its answers.
//
// No call throws, aborts, exits, prints, or looks at the locale. What can fail returns a Result or
// a Status (kvasir/result.h) whose message is for people; running out of memory is an Error too.
// Callbacks run on the calling thread; one that throws ends the call with ErrorCode::internal.
// Any call that works for long takes a CancelToken, which any thread may set; it ends within 100
// ms.
#pragma once

#include <kvasir/version.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/cancel.h"
#include "kvasir/result.h"

namespace kvasir {

class Chat;

struct ModelOptions {
  int threads = 0;               ///< to load and compute with; 0: as many as fit the machine
  int64_t context_tokens = 0;    ///< most tokens of a chat; 0: what the model was trained for
  int64_t prefill_chunk = 512;   ///< prompt tokens evaluated together; never changes a result
  std::string kv_type = "auto";  ///< keys and values: "f32", "f16", or "auto" (f32 for f32 models)
  std::function<void(int64_t done_bytes, int64_t total_bytes)>
      progress;                         ///< of loading; may be empty
  const CancelToken* cancel = nullptr;  ///< of loading
};

/// How an answer is sampled and when it ends. Steps in this order: penalties, temperature, top-k,
/// top-p, min-p, draw. The same options and the same conversation give the same answer, bit for
/// bit.
struct ReplyOptions {
  float temperature = 0.7F;         ///< 0: always the most likely token, of equals the lowest id
  int32_t top_k = 0;                ///< 0: all tokens
  float top_p = 0.95F;              ///< from 0 to 1
  float min_p = 0.05F;              ///< from 0 to 1
  float repetition_penalty = 1.0F;  ///< > 0; 1: none
  float presence_penalty = 0.0F;
  float frequency_penalty = 0.0F;
  uint64_t seed = 0;
  int64_t max_tokens = 0;                 ///< 0: until the context is full
  std::vector<std::string> stop_strings;  ///< each ends the answer and is not part of it
};

enum class ReplyEnd : uint8_t {
  stop,          ///< the model ended it, or a stop string came
  length,        ///< max_tokens
  context_full,  ///< no room for another token
  cancelled,     ///< the text so far is valid
};

struct Reply {
  std::string text;             ///< valid UTF-8; equals the pieces given to on_text, joined
  std::vector<int32_t> tokens;  ///< sampled, the one that ended the answer included
  ReplyEnd end = ReplyEnd::stop;
  int64_t prompt_tokens = 0;         ///< of the whole conversation up to the answer
  int64_t prompt_tokens_cached = 0;  ///< of these, already evaluated in an earlier turn
  double prompt_s = 0;               ///< seconds spent on the prompt
  double answer_s = 0;               ///< seconds spent on the answer
  uint64_t logits_hash = 0;          ///< of the last logits: equal hashes, equal bits
};

/// Whole characters of the answer as they come. Valid during the call only.
using OnText = std::function<void(std::string_view text)>;

/// Whether the spelling of control tokens ("<|im_end|>") in a text means the tokens.
enum class Markup : uint8_t { as_text, parse };

/// A loaded model. Copies share it; it is freed when the last copy and the last chat are gone.
/// Immutable: every call may be made from several threads at once.
class [[gnu::visibility("default")]] LanguageModel {
 public:
  /// `path_or_name`: a GGUF file, or the name of one in the folder of models ($KVASIR_MODELS, else
  /// $XDG_CACHE_HOME/kvasir/models, else ~/.cache/kvasir/models). The environment variable
  /// KVASIR_ISA may force a set of kernels. out_of_memory, before anything is read, when weights
  /// and a full context would not fit the memory that is available.
  static Result<LanguageModel> load(const std::string& path_or_name,
                                    const ModelOptions& options = {});

  LanguageModel(const LanguageModel&) noexcept;
  LanguageModel(LanguageModel&&) noexcept;
  LanguageModel& operator=(const LanguageModel&) noexcept;
  LanguageModel& operator=(LanguageModel&&) noexcept;
  ~LanguageModel();

  /// As the file names itself. Valid as long as the model.
  std::string_view name() const noexcept;
  /// Tokens a chat may have.
  int64_t context_tokens() const noexcept;
  int64_t n_vocab() const noexcept;

  /// A conversation with memory of its own for one context (keys and values grow with its length).
  /// unsupported when the file has no usable chat template.
  Result<Chat> start_chat() const;

  /// Continues `prompt` as it is, without a template: control tokens in it are recognised, and BOS
  /// comes first where the file says so. Makes and frees a context of its own.
  Result<Reply> complete(std::string_view prompt, const ReplyOptions& options = {},
                         const OnText& on_text = {}, const CancelToken* cancel = nullptr) const;

  /// Token ids of any bytes, without BOS.
  Result<std::vector<int32_t>> tokenize(std::string_view text,
                                        Markup markup = Markup::as_text) const;
  /// The bytes of the ids, which need not be whole characters. invalid_argument for an id outside
  /// the vocabulary.
  Result<std::string> detokenize(std::span<const int32_t> tokens) const;

 private:
  friend class Chat;
  struct Impl;
  explicit LanguageModel(std::shared_ptr<const Impl> impl) noexcept;
  std::shared_ptr<const Impl> impl_;
};

struct Message {
  std::string role;     ///< "system", "user" or "assistant"
  std::string content;  ///< UTF-8; control tokens spelled in it stay text
};

/// A conversation. One thread at a time; different chats may run at the same time. Keeps its model
/// alive. After being moved from, it may only be destroyed or assigned to.
class [[gnu::visibility("default")]] Chat {
 public:
  Chat(Chat&&) noexcept;
  Chat& operator=(Chat&&) noexcept;
  ~Chat();

  /// Asks and answers. Only what is new since the last turn is evaluated. A cancelled answer stays
  /// in the conversation as far as it came; after an error the conversation is as before.
  /// limit_exceeded when no room for an answer is left: undo or clear makes some.
  Result<Reply> send(std::string text, const ReplyOptions& options = {}, const OnText& on_text = {},
                     const CancelToken* cancel = nullptr);

  /// Answers the last question again. invalid_argument when there is no answer yet.
  Result<Reply> regenerate(const ReplyOptions& options = {}, const OnText& on_text = {},
                           const CancelToken* cancel = nullptr);

  /// Takes back the last question and its answer; false when there is none.
  bool undo() noexcept;
  /// Forgets all but the system message.
  void clear() noexcept;
  /// Replaces the system message; an empty text removes it.
  Status set_system(std::string text);

  Result<std::vector<Message>> messages() const;
  /// Goes on from other messages, for example stored ones.
  Status set_messages(const std::vector<Message>& messages);

 private:
  friend class LanguageModel;
  struct Impl;
  explicit Chat(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvasir

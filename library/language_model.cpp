#include <chrono>
#include <limits>

#include "core/base/error.h"
#include "library/guard.h"
#include "library/parts.h"

namespace kvasir {
namespace {

Status check_range(const char* name, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return {};
  return make_error(ErrorCode::invalid_argument, "{} is {}, but must be from {} to {}", name, value,
                    least, most);
}

/// Ranges are checked before a memory plan is computed from them.
Result<EngineOptions> to_engine_options(const ModelOptions& options) {
  if (auto s = check_range("threads", options.threads, 0, 1024); !s) return std::move(s).error();
  if (auto s = check_range("context_tokens", options.context_tokens, 0, int64_t{1} << 27); !s)
    return std::move(s).error();
  if (auto s = check_range("prefill_chunk", options.prefill_chunk, 1, 65536); !s)
    return std::move(s).error();
  EngineOptions engine;
  engine.threads = options.threads;
  engine.context_tokens = options.context_tokens;
  engine.prefill_chunk = options.prefill_chunk;
  engine.kv_type = kv::find_kv_type(options.kv_type);
  if (!engine.kv_type && options.kv_type != "auto") {
    return make_error(ErrorCode::invalid_argument, "the KV type '{}' is not known (auto, f16, f32)",
                      options.kv_type);
  }
  return engine;
}

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

ReplyEnd to_end(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop:
      return ReplyEnd::stop;
    case FinishReason::length:
      return ReplyEnd::length;
    case FinishReason::context_full:
      return ReplyEnd::context_full;
    case FinishReason::cancelled:
      break;
  }
  return ReplyEnd::cancelled;
}

}  // namespace

Status check(const ReplyOptions& options) {
  return check_range("max_tokens", options.max_tokens, 0, std::numeric_limits<int64_t>::max());
}

GenerateOptions to_generate_options(const ReplyOptions& options, const Tokenizer& tokenizer) {
  GenerateOptions all;
  all.sampling.temperature = options.temperature;
  all.sampling.top_k = options.top_k;
  all.sampling.top_p = options.top_p;
  all.sampling.min_p = options.min_p;
  all.sampling.repetition_penalty = options.repetition_penalty;
  all.sampling.presence_penalty = options.presence_penalty;
  all.sampling.frequency_penalty = options.frequency_penalty;
  all.sampling.seed = options.seed;
  all.max_tokens = options.max_tokens;
  all.stop_strings = options.stop_strings;
  all.end_tokens.assign(tokenizer.end_tokens().begin(), tokenizer.end_tokens().end());
  return all;
}

Reply to_reply(Generation generation, const Session& session) {
  Reply reply;
  reply.text = std::move(generation.text);
  reply.tokens = std::move(generation.tokens);
  reply.end = to_end(generation.finish_reason);
  reply.prompt_tokens = generation.prefill.tokens_evaluated + generation.prefill.tokens_cached;
  reply.prompt_tokens_cached = generation.prefill.tokens_cached;
  reply.prompt_s = seconds(generation.prefill.forward.time);
  reply.answer_s = seconds(generation.decode.forward.time);
  reply.logits_hash = session.logits_hash();
  return reply;
}

Result<std::unique_ptr<Session>> LanguageModel::Impl::new_session() const {
  auto engine = Engine::create(loaded->model, engine_options);
  if (!engine) return std::move(engine).error();
  return Session::create(std::move(*engine));
}

Result<LanguageModel> LanguageModel::load(const std::string& path_or_name,
                                          const ModelOptions& options) {
  return guarded([&]() -> Result<LanguageModel> {
    auto engine = to_engine_options(options);
    if (!engine) return std::move(engine).error();
    auto path = resolve_model(path_or_name);
    if (!path) return std::move(path).error();
    LoadOptions load;
    load.threads = options.threads;
    load.progress = options.progress;
    load.cancel = options.cancel;
    load.engine = *engine;
    auto loaded = load_model(*path, load);
    if (!loaded) return std::move(loaded).error();
    if (engine->context_tokens == 0)
      engine->context_tokens = (*loaded)->model->trained_context_tokens();
    return LanguageModel(std::make_shared<const Impl>(Impl{std::move(*loaded), *engine}));
  });
}

LanguageModel::LanguageModel(std::shared_ptr<const Impl> impl) noexcept : impl_(std::move(impl)) {}
LanguageModel::LanguageModel(const LanguageModel&) noexcept = default;
LanguageModel::LanguageModel(LanguageModel&&) noexcept = default;
LanguageModel& LanguageModel::operator=(const LanguageModel&) noexcept = default;
LanguageModel& LanguageModel::operator=(LanguageModel&&) noexcept = default;
LanguageModel::~LanguageModel() = default;

std::string_view LanguageModel::name() const noexcept {
  return impl_->loaded->name;
}
int64_t LanguageModel::context_tokens() const noexcept {
  return impl_->engine_options.context_tokens;
}
int64_t LanguageModel::n_vocab() const noexcept {
  return impl_->loaded->model->n_vocab();
}

Result<Chat> LanguageModel::start_chat() const {
  return guarded([&]() -> Result<Chat> {
    const LoadedModel& loaded = *impl_->loaded;
    if (loaded.chat_template == nullptr)
      return Error{ErrorCode::unsupported, loaded.chat_template_error};
    auto session = impl_->new_session();
    if (!session) return std::move(session).error();
    const Conversation conversation(**session, *loaded.tokenizer, *loaded.chat_template);
    return Chat(std::make_unique<Chat::Impl>(Chat::Impl{impl_, std::move(*session), conversation}));
  });
}

Result<Reply> LanguageModel::complete(std::string_view prompt, const ReplyOptions& options,
                                      const OnText& on_text, const CancelToken* cancel) const {
  return guarded([&]() -> Result<Reply> {
    const Tokenizer& tokenizer = *impl_->loaded->tokenizer;
    if (auto s = check(options); !s) return std::move(s).error();
    auto ids = raw_prompt(tokenizer, prompt);
    if (!ids) return std::move(ids).error();
    auto session = impl_->new_session();
    if (!session) return std::move(session).error();
    auto generation = generate(**session, tokenizer, *ids, to_generate_options(options, tokenizer),
                               {on_text, {}}, cancel);
    if (!generation) return std::move(generation).error();
    return to_reply(std::move(*generation), **session);
  });
}

Result<std::vector<int32_t>> LanguageModel::tokenize(std::string_view text, Markup markup) const {
  return guarded([&] {
    return impl_->loaded->tokenizer->encode(
        text, markup == Markup::parse ? SpecialTokens::parse : SpecialTokens::as_text);
  });
}

Result<std::string> LanguageModel::detokenize(std::span<const int32_t> tokens) const {
  return guarded([&]() -> Result<std::string> {
    const Tokenizer& tokenizer = *impl_->loaded->tokenizer;
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] < 0 || tokens[i] >= tokenizer.n_vocab()) {
        return make_error(ErrorCode::invalid_argument,
                          "token {} at position {} is outside the vocabulary of {} tokens",
                          tokens[i], i, tokenizer.n_vocab());
      }
    }
    return tokenizer.decode(tokens);
  });
}

}  // namespace kvasir

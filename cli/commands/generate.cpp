// kvasir generate: one prompt, one answer.
#include <fmt/format.h>

#include <memory>

#include "cli/answer.h"
#include "cli/commands.h"
#include "cli/loading.h"
#include "cli/messages.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "core/base/error.h"
#include "core/base/system_memory.h"
#include "core/engine/conversation.h"

namespace kvasir::cli {
namespace {

struct Options {
  std::string model;
  PromptOptions prompt;
  SamplingOptions sampling;
  ComputeOptions compute;
  int64_t max_tokens = 0;
  std::vector<std::string> stops;
  int32_t n_logprobs = 0;
  bool json = false;
};

Result<std::vector<TokenId>> raw_prompt(const Tokenizer& tokenizer, const std::string& text) {
  auto ids = tokenizer.encode(text, SpecialTokens::parse);
  if (!ids) return ids;
  if (tokenizer.adds_bos()) ids->insert(ids->begin(), *tokenizer.bos());
  if (ids->empty()) return make_error(ErrorCode::invalid_argument, "the prompt is empty");
  return ids;
}

/// The ids to start from.
Result<std::vector<TokenId>> prompt_ids(const Options& options, const LoadedModel& loaded,
                                        Session& session) {
  std::vector<ChatMessage> messages;
  if (!options.prompt.messages_file.empty()) {
    auto read = read_messages(options.prompt.messages_file);
    if (!read) return std::move(read).error();
    messages = std::move(*read);
  } else {
    auto text = options.prompt.prompt ? Result<std::string>(*options.prompt.prompt)
                                      : read_text(options.prompt.prompt_file);
    if (!text) return std::move(text).error();
    if (options.prompt.raw) return raw_prompt(*loaded.tokenizer, *text);
    messages.push_back({"user", std::move(*text)});
  }
  if (loaded.chat_template == nullptr) {
    return make_error(ErrorCode::unsupported,
                      "{}; --raw gives the prompt to the model as it is", loaded.chat_template_error);
  }
  Conversation conversation(session, *loaded.tokenizer, *loaded.chat_template);
  conversation.set_messages(std::move(messages));
  if (!options.prompt.system.empty()) {
    auto system = text_or_file(options.prompt.system);
    if (!system) return std::move(system).error();
    conversation.set_system(std::move(*system));
  }
  return conversation.prompt();
}

Json answer_json(const Ready& ready, Session& session, const std::vector<TokenId>& prompt,
                 const Generation& answer) {
  Json json = {{"text", answer.text},
               {"tokens", answer.tokens},
               {"finish_reason", finish_reason_name(answer.finish_reason)},
               {"prompt_tokens", prompt.size()},
               {"completion_tokens", answer.tokens.size()}};
  if (!answer.logprobs.empty()) {
    Json all = Json::array();
    for (const auto& token : answer.logprobs) {
      Json top = Json::array();
      for (const auto& t : token.top) top.push_back({{"token", t.token}, {"logprob", t.logprob}});
      all.push_back({{"token", token.token}, {"logprob", token.logprob}, {"top", top}});
    }
    json["logprobs"] = all;
  }
  Json statistics = describe_engine(*ready.engine);
  ForwardStatistics forward = answer.prefill.forward;
  forward.add(answer.decode.forward);
  statistics["prefill_chunks"] = answer.prefill.chunks;
  statistics["tokens_evaluated"] = answer.prefill.tokens_evaluated + answer.decode.tokens_evaluated;
  statistics["tokens_cached"] = answer.prefill.tokens_cached;
  statistics["kernels"] = describe_kernels(forward);
  statistics["kv_bytes_by_type"] = describe_kv(*ready.engine);
  statistics["logits_hash"] = hash_text(session.logits_hash());
  statistics["prefill_tokens_per_s"] = tokens_per_s(answer.prefill);
  statistics["decode_tokens_per_s"] = tokens_per_s(answer.decode);
  statistics["decode_gb_per_s"] = gb_per_s(answer.decode.forward);
  statistics["load_s"] = ready.load_s;
  statistics["time_to_first_token_s"] =
      ready.load_s + std::chrono::duration<double>(answer.prefill.forward.time).count();
  statistics["peak_memory_bytes"] = peak_resident_bytes();
  json["statistics"] = statistics;
  return json;
}

int run(const Options& options) {
  auto ready = load_for(options.model, options.compute.engine());
  if (!ready) return fail(ready.error());
  auto session = Session::create(ready->engine);
  if (!session) return fail(session.error());
  auto prompt = prompt_ids(options, *ready->loaded, **session);
  if (!prompt) return fail(prompt.error());

  GenerateOptions generate_options;
  generate_options.sampling = options.sampling.parameters;
  generate_options.max_tokens = options.max_tokens;
  generate_options.stop_strings = options.stops;
  const auto ends = ready->loaded->tokenizer->end_tokens();
  generate_options.end_tokens.assign(ends.begin(), ends.end());
  generate_options.n_logprobs = options.n_logprobs;

  const InterruptGuard guard;
  AnswerPrinter printer(!options.json);
  auto answer = generate(**session, *ready->loaded->tokenizer, *prompt, generate_options,
                         printer.callbacks(), &InterruptGuard::token());
  printer.finish();
  if (!answer) return fail(answer.error());
  if (options.json) {
    print(to_text(answer_json(*ready, **session, *prompt, *answer), 2) + "\n");
  } else {
    print("\n");
  }
  const int written = finish_output();
  if (written != kExitOk) return written;
  return answer->finish_reason == FinishReason::cancelled ? kExitInterrupted : kExitOk;
}

}  // namespace

void add_generate(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("generate", "answer one prompt and exit");
  auto options = std::make_shared<Options>();
  declare_model(*command, options->model);
  options->prompt.declare(*command);
  command->add_option("--max-tokens", options->max_tokens, "most tokens of the answer; 0: until the context is full")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))->capture_default_str()->type_name("N");
  command->add_option("--stop", options->stops, "text that ends the answer (repeatable); it is not shown")
      ->type_name("S")->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  options->sampling.declare(*command);
  command->add_option("--logprobs", options->n_logprobs, "with --json: the N most likely tokens at each step")
      ->check(CLI::Range(0, 1000))->type_name("N");
  options->compute.declare(*command);
  declare_json(*command, options->json);
  command->callback([options, &exit_code] {
    const auto& p = options->prompt;
    if (!p.prompt && p.prompt_file.empty() && p.messages_file.empty())
      throw CLI::RequiredError("one of --prompt, --prompt-file and --messages");
    exit_code = run(*options);
  });
}

}  // namespace kvasir::cli

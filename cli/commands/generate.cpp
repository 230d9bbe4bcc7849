// kvasir generate: one prompt, one answer.
#include <fmt/format.h>

#include <memory>
#include <optional>

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
  std::optional<std::string> prompt;
  std::optional<std::string> prompt_file;
  std::optional<std::string> messages_file;
  std::string system;
  bool raw = false;
  SamplingOptions sampling;
  LengthOptions length;
  ComputeOptions compute;
  int32_t n_logprobs = 0;
  bool json = false;
};

/// What was asked, read before a model is loaded for it.
struct Question {
  std::string raw_text;  ///< with --raw
  std::vector<ChatMessage> messages;
};

Result<Question> read_question(const Options& options) {
  Question question;
  if (options.messages_file) {
    auto messages = read_messages(*options.messages_file);
    if (!messages) return std::move(messages).error();
    question.messages = std::move(*messages);
    return question;
  }
  auto text =
      options.prompt ? Result<std::string>(*options.prompt) : read_text(*options.prompt_file);
  if (!text) return std::move(text).error();
  if (options.raw) {
    question.raw_text = std::move(*text);
    return question;
  }
  if (!options.system.empty()) {
    auto system = text_or_file(options.system);
    if (!system) return std::move(system).error();
    question.messages.push_back({"system", std::move(*system)});
  }
  question.messages.push_back({"user", std::move(*text)});
  return question;
}

Result<std::vector<TokenId>> prompt_ids(const Question& question, const LoadedModel& loaded,
                                        bool raw) {
  if (raw) return raw_prompt(*loaded.tokenizer, question.raw_text);
  if (loaded.chat_template == nullptr) {
    return make_error(ErrorCode::unsupported, "{}; --raw gives the prompt to the model as it is",
                      loaded.chat_template_error);
  }
  return conversation_prompt(*loaded.tokenizer, *loaded.chat_template, question.messages);
}

Json logprobs_json(const std::vector<SampledToken>& tokens, const Tokenizer& tokenizer) {
  const auto entry = [&](TokenId id, float logprob) {
    const auto bytes = tokenizer.token_bytes(id);  // none of a control token
    return Json{{"token", id},
                {"text", std::string(bytes.empty() ? tokenizer.token_text(id) : bytes)},
                {"logprob", logprob}};
  };
  Json all = Json::array();
  for (const auto& token : tokens) {
    Json one = entry(token.token, token.logprob);
    one["top"] = Json::array();
    for (const auto& t : token.top) one["top"].push_back(entry(t.token, t.logprob));
    all.push_back(std::move(one));
  }
  return all;
}

Json statistics_json(const Ready& ready, Session& session, const Generation& answer,
                     const AnswerPrinter& printer) {
  Json statistics = describe_engine(*ready.engine);
  ForwardStatistics forward = answer.prefill.forward;
  forward.add(answer.decode.forward);
  statistics["prefill_chunks"] = answer.prefill.chunks;
  statistics["tokens_evaluated"] = answer.prefill.tokens_evaluated + answer.decode.tokens_evaluated;
  statistics["tokens_cached"] = answer.prefill.tokens_cached;
  statistics["tokens_reevaluated"] = answer.prefill.tokens_reevaluated;
  statistics["kernels"] = describe_kernels(forward);
  statistics["kv_bytes_by_type"] = describe_kv(*ready.engine);
  statistics["logits_hash"] = hash_text(session.logits_hash());
  statistics["prefill_tokens_per_s"] = tokens_per_s(answer.prefill);
  statistics["decode_tokens_per_s"] = tokens_per_s(answer.decode);
  statistics["decode_gb_per_s"] = gb_per_s(answer.decode.forward);
  statistics["load_s"] = ready.load_s;
  // From the begin of loading to the logits of the first token; null when none came.
  const auto began = printer.answer_began();
  statistics["time_to_first_token_s"] =
      began > ready.start ? Json(std::chrono::duration<double>(began - ready.start).count())
                          : Json();
  statistics["peak_memory_bytes"] = peak_resident_bytes();
  return statistics;
}

int run(const Options& options) {
  auto question = read_question(options);
  if (!question) return fail(question.error());
  auto ready = load_for(options.model, options.compute.engine());
  if (!ready) return fail(ready.error());
  const Tokenizer& tokenizer = *ready->loaded->tokenizer;
  auto prompt = prompt_ids(*question, *ready->loaded, options.raw);
  if (!prompt) return fail(prompt.error());
  auto session = Session::create(ready->engine);
  if (!session) return fail(session.error());
  GenerateOptions how = generate_options(options.sampling, options.length, tokenizer);
  how.n_logprobs = options.n_logprobs;

  const InterruptGuard guard;
  AnswerPrinter printer(options.json ? AnswerPrinter::Text::kept : AnswerPrinter::Text::shown);
  auto answer =
      generate(**session, tokenizer, *prompt, how, printer.callbacks(), &InterruptGuard::token());
  if (!answer) {
    printer.abandon();
    return fail(answer.error());
  }
  printer.finish();
  if (options.json) {
    Json json = {{"text", answer->text},
                 {"tokens", answer->tokens},
                 {"finish_reason", finish_reason_name(answer->finish_reason)},
                 {"prompt_tokens", prompt->size()},
                 {"completion_tokens", answer->tokens.size()}};
    if (options.n_logprobs > 0) json["logprobs"] = logprobs_json(answer->logprobs, tokenizer);
    json["statistics"] = statistics_json(*ready, **session, *answer, printer);
    print(to_text(json, 2) + "\n");
  }
  const int written = finish_output();
  if (written != kExitOk) return written;
  if (answer->finish_reason == FinishReason::context_full)
    warn(fmt::format("the context of {} tokens is full: the answer is not complete (see --ctx)",
                     (*session)->context_tokens()));
  return answer->finish_reason == FinishReason::cancelled ? kExitInterrupted : kExitOk;
}

void declare_question(CLI::App& command, Options& options) {
  auto* sources = command.add_option_group("Question", "exactly one of these");
  add_text(*sources, "--prompt", options.prompt, "TEXT", "what to answer");
  add_text(*sources, "--prompt-file", options.prompt_file, "FILE",
           "file with what to answer; - is standard input");
  auto* messages =
      add_text(*sources, "--messages", options.messages_file, "FILE",
               "JSON file, a list of {\"role\": .., \"content\": ..}; - is standard input");
  sources->require_option(1);
  auto* system = declare_system(command, options.system)->excludes(messages);
  command
      .add_flag("--raw", options.raw,
                "give the prompt to the model as it is, without its chat template")
      ->excludes(messages)
      ->excludes(system);
}

}  // namespace

void add_generate(CLI::App& app, Run& run_later) {
  auto* command = app.add_subcommand("generate", "answer one prompt and exit");
  auto options = std::make_shared<Options>();
  declare_model(*command, options->model)->required();
  declare_question(*command, *options);
  options->length.declare(*command);
  options->sampling.declare(*command, SamplingOptions::Seed::fixed);
  auto* json = declare_json(*command, options->json);
  add_number<int32_t>(*command, options->n_logprobs,
                      {"--logprobs", 0, 1000, "the N most likely tokens at each step, in the JSON"})
      ->needs(json);
  options->compute.declare(*command);
  command->callback([options, &run_later] { run_later = [options] { return run(*options); }; });
}

}  // namespace kvasir::cli

// kvasir perplexity: how well a model predicts a text, alone and beside a reference.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/loading.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "core/evaluation/text_evaluation.h"

namespace kvasir::cli {
namespace {

struct Options {
  std::string model;
  std::string file;
  std::string base;
  std::string save;
  ComputeOptions compute;
  bool json = false;
};

Json describe_mean(const Mean& mean) {
  return {{"value", mean.value}, {"standard_error", mean.standard_error}};
}

Json result_json(const TextEvaluation& result, const TextWindows& windows, const Ready& ready) {
  Json json = describe_engine(*ready.engine);
  json["model"] = {{"name", ready.loaded->name}, {"path", ready.loaded->path}};
  json["windows"] = windows.n_windows();
  json["tokens_evaluated"] = result.tokens_evaluated;
  json["tokens_scored"] = result.tokens_scored;
  json["tokens_left_out"] = windows.left_out;
  json["perplexity"] = describe_mean(result.perplexity);
  json["seconds"] = result.time.count();
  json["tokens_per_s"] = static_cast<double>(result.tokens_evaluated) / result.time.count();
  json["kernels"] = describe_kernels(result.forward);
  if (!result.divergence) return json;
  const auto& d = *result.divergence;
  json["base"] = {{"perplexity", describe_mean(d.base_perplexity)},
                  {"kl", describe_mean(d.kl)},
                  {"kl_quantile_99", d.quantile_99},
                  {"kl_quantile_999", d.quantile_999},
                  {"kl_maximum", d.maximum},
                  {"same_best_token", d.same_best_share}};
  return json;
}

void print_text(const TextEvaluation& result, const TextWindows& windows) {
  const auto line = [](const char* name, const std::string& value) {
    print(fmt::format("{:<18} {}\n", name, value));
  };
  const auto with_error = [](const Mean& mean) {
    return fmt::format("{:.6g} +- {:.2g}", mean.value, mean.standard_error);
  };
  line("perplexity", with_error(result.perplexity));
  line("tokens scored", fmt::format("{} of {} in {} windows of {}; {} left out at the end",
                                    result.tokens_scored, result.tokens_evaluated,
                                    windows.n_windows(), windows.context_tokens, windows.left_out));
  line("tokens/s",
       fmt::format("{:.1f}", static_cast<double>(result.tokens_evaluated) / result.time.count()));
  if (!result.divergence) return;
  const auto& d = *result.divergence;
  line("base perplexity", with_error(d.base_perplexity));
  line("mean KL", with_error(d.kl) + " nats");
  line("99% KL", fmt::format("{:.4g}", d.quantile_99));
  line("99.9% KL", fmt::format("{:.4g}", d.quantile_999));
  line("maximum KL", fmt::format("{:.4g}", d.maximum));
  line("same best token", fmt::format("{:.2f}%", 100 * d.same_best_share));
}

Result<TextEvaluation> evaluate(Engine& engine, const TextWindows& windows,
                                const Options& options) {
  const InterruptGuard guard;
  ProgressBar bar("evaluating");
  TextEvaluationOptions how;
  how.cancel = &InterruptGuard::token();
  how.progress = [&](int64_t done, int64_t total) { bar.update(done, total); };
  std::optional<LogitsFile> base;
  if (!options.base.empty()) {
    auto opened = LogitsFile::open(options.base);
    if (!opened) return std::move(opened).error();
    base = std::move(*opened);
    how.base = &*base;
  }
  std::optional<LogitsWriter> writer;
  if (!options.save.empty()) {
    auto made = LogitsWriter::create(options.save, windows.tokens, windows.context_tokens,
                                     engine.model().n_vocab());
    if (!made) return std::move(made).error();
    writer = std::move(*made);
    how.save = &*writer;
  }
  auto result = evaluate_text(engine, windows, how);
  if (!result) return result;
  if (writer) {
    if (auto s = writer->finish(); !s) return std::move(s).error();
  }
  return result;
}

int run(const Options& options) {
  auto text = read_text(options.file);
  if (!text) return fail(text.error());
  const int64_t context = options.compute.context_tokens;
  auto ready = load_for(options.model, text_evaluation_engine(options.compute.engine(), context));
  if (!ready) return fail(ready.error());
  auto windows = cut_into_windows(*ready->loaded->tokenizer, *text, context);
  if (!windows) {
    return fail(
        {windows.error().code, fmt::format("'{}': {}", options.file, windows.error().message)});
  }
  auto result = evaluate(*ready->engine, *windows, options);
  if (!result) return fail(result.error());
  if (options.json) {
    print(to_text(result_json(*result, *windows, *ready), 2) + "\n");
  } else {
    print_text(*result, *windows);
  }
  return finish_output();
}

}  // namespace

void add_perplexity(CLI::App& app, Run& run_later) {
  auto* command = app.add_subcommand("perplexity", "how well a model predicts a text");
  auto options = std::make_shared<Options>();
  options->compute.context_tokens = 512;
  declare_model(*command, options->model)->required();
  command->add_option("--file", options->file, "the text (-: standard input)")
      ->required()
      ->type_name("FILE");
  add_number<int64_t>(*command, options->compute.context_tokens,
                      {"--ctx", 4, int64_t{1} << 27, "tokens of a window"});
  command
      ->add_option("--kl-base", options->base,
                   "a reference's tokens and logits (.npz): also prints divergences from it")
      ->type_name("FILE");
  command
      ->add_option("--save-logits", options->save,
                   "writes this model's tokens and logits (.npz), to be a --kl-base later")
      ->type_name("FILE");
  declare_threads(*command, options->compute.threads);
  options->compute.declare_chunk_and_types(*command);
  declare_json(*command, options->json);
  command->footer(
      "The text's tokens (spellings of control tokens count as text; BOS first where the model "
      "adds\n"
      "one) are cut into windows of --ctx tokens that do not overlap, each evaluated from an "
      "empty\n"
      "context; what is left at the end is left out. Where the model adds BOS it takes the place "
      "of\n"
      "the first token of every window. Scored are the predictions of positions ctx/2 to ctx-2, "
      "as\n"
      "llama.cpp's perplexity does.\n"
      "An .npz file is numpy.savez(FILE, tokens=int32 [n], logits=float32 or float16 [n, "
      "n_vocab]);\n"
      "row i holds the logits after token i of its window, all windows one after another. With\n"
      "ctx=int32, the tokens of a window, another --ctx is refused.");
  command->callback([options, &run_later] { run_later = [options] { return run(*options); }; });
}

}  // namespace kvasir::cli

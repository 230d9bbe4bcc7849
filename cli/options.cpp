#include "cli/options.h"

#include <cstdio>
#include <limits>
#include <memory>

#include "core/base/error.h"
#include "core/kv/layout.h"

namespace kvasir::cli {

void ComputeOptions::declare(CLI::App& command) {
  command.add_option("--threads", threads, "threads to compute with (default: fits the machine, see `kvasir system`)")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  command.add_option("--prefill-chunk", prefill_chunk, "prompt tokens evaluated together; never changes a result")
      ->check(CLI::Range(int64_t{1}, int64_t{65536}))
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--ctx", context_tokens, "positions the context may have (default: the model's trained length)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 27))
      ->type_name("N");
  command.add_option("--kv-type", kv_type, "type of stored keys and values; auto: f32 for f32 models, else f16")
      ->check(CLI::IsMember({"auto", "f16", "f32"}))
      ->capture_default_str()
      ->type_name("TYPE");
  command.add_option("--math", math,
                     "reproducible: the same bits everywhere; fast: dense weights may use oneDNN")
      ->check(CLI::IsMember({"reproducible", "fast"}))
      ->capture_default_str()
      ->type_name("MODE");
}

EngineOptions ComputeOptions::engine() const {
  EngineOptions options;
  options.threads = threads;
  options.prefill_chunk = prefill_chunk;
  options.context_tokens = context_tokens;
  options.kv_type = kv::find_kv_type(kv_type);
  options.math = math == "fast" ? MathMode::fast : MathMode::reproducible;
  return options;
}

void SamplingOptions::declare(CLI::App& command) {
  auto& p = parameters;
  command.add_option("--temperature", p.temperature, "0: always the most likely token; higher: more varied")
      ->check(CLI::Range(0.0, 1000.0))->capture_default_str()->type_name("X");
  command.add_option("--top-k", p.top_k, "keep the K most likely tokens; 0: all")
      ->check(CLI::Range(0, std::numeric_limits<int32_t>::max()))->capture_default_str()->type_name("K");
  command.add_option("--top-p", p.top_p, "keep the smallest set of tokens with this probability")
      ->check(CLI::Range(0.0, 1.0))->capture_default_str()->type_name("P");
  command.add_option("--min-p", p.min_p, "drop tokens below this share of the best one's probability")
      ->check(CLI::Range(0.0, 1.0))->capture_default_str()->type_name("P");
  command.add_option("--repetition-penalty", p.repetition_penalty, "weaken tokens already seen; 1: off")
      ->check(CLI::Range(1e-6, 1e6))->capture_default_str()->type_name("X");
  command.add_option("--presence-penalty", p.presence_penalty, "subtract from the logit of every token seen")
      ->check(CLI::Range(-1e6, 1e6))->capture_default_str()->type_name("X");
  command.add_option("--frequency-penalty", p.frequency_penalty, "subtract for each time a token was seen")
      ->check(CLI::Range(-1e6, 1e6))->capture_default_str()->type_name("X");
  command.add_option("--seed", p.seed, "seed of the random draws; the same seed gives the same answer")
      ->capture_default_str()->type_name("S");
}

void PromptOptions::declare(CLI::App& command) {
  auto* text = command.add_option("--prompt", prompt, "what to answer")->type_name("TEXT");
  auto* file = command.add_option("--prompt-file", prompt_file, "file with what to answer; - is standard input")
                   ->type_name("FILE");
  auto* list = command.add_option("--messages", messages_file,
                                  "JSON file with a list of {\"role\": .., \"content\": ..}; - is standard input")
                   ->type_name("FILE");
  text->excludes(file)->excludes(list);
  file->excludes(list);
  command.add_option("--system", system, "system message, or @FILE")->type_name("TEXT")->excludes(list);
  command.add_flag("--raw", raw, "the prompt as it is, without the model's chat template")->excludes(list);
}

void declare_model(CLI::App& command, std::string& model, bool required) {
  auto* option = command.add_option("model", model, "path of a GGUF file, or name of a model in the cache folder")
                     ->type_name("MODEL");
  if (required) option->required();
  else option->capture_default_str();
}

void declare_json(CLI::App& command, bool& json) {
  command.add_flag("--json", json, "print JSON, for scripts");
}

Result<std::string> read_text(const std::string& path) {
  struct Close {
    void operator()(std::FILE* f) const { if (f != stdin) std::fclose(f); }
  };
  const std::unique_ptr<std::FILE, Close> file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (!file) return make_error(ErrorCode::not_found, "cannot open '{}'", path);
  std::string text;
  char buffer[65536];
  size_t n;
  while ((n = std::fread(buffer, 1, sizeof(buffer), file.get())) > 0) text.append(buffer, n);
  if (std::ferror(file.get()) != 0) return make_error(ErrorCode::io, "cannot read '{}'", path);
  return text;
}

Result<std::string> text_or_file(const std::string& text) {
  if (text.size() > 1 && text[0] == '@') return read_text(text.substr(1));
  return text;
}

}  // namespace kvasir::cli

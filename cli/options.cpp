#include "cli/options.h"

#include <errno.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstdio>
#include <limits>
#include <memory>
#include <type_traits>

#include "core/base/error.h"
#include "core/files/mapped_file.h"
#include "core/kv/layout.h"

namespace kvasir::cli {
namespace {

constexpr int64_t kMaxTokens = int64_t{1} << 40;

/// The whole of `text` as a number, whatever the locale; nothing when it is none or too large.
template <class T>
std::optional<T> parse(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Text as a number of the declared range, or a usage error.
template <class T>
T checked_number(const std::string& text, const NumberOption<T>& declared) {
  // A float is read as a double: 1e-50 is 0 then, not out of range.
  using Read = std::conditional_t<std::is_same_v<T, float>, double, T>;
  const auto number = parse<Read>(text);
  // Written so that NaN, which is never within a range, is refused.
  if (number && *number >= declared.least && *number <= declared.most)
    return static_cast<T>(*number);
  throw CLI::ValidationError(
      declared.name, fmt::format("'{}' is not a {}number from {} to {}", text,
                                 std::is_integral_v<T> ? "whole " : "", declared.least,
                                 declared.most));
}

}  // namespace

template <class T>
CLI::Option* add_number(CLI::App& command, T& value, const NumberOption<T>& declared) {
  const auto set = [&value, declared](const CLI::results_t& given) {
    value = checked_number(given.back(), declared);
    return true;
  };
  auto* option = command.add_option(declared.name, CLI::callback_t(set), declared.help);
  option->expected(1)->type_name(std::is_integral_v<T> ? "N" : "X");
  if (declared.has_default) option->default_str(fmt::format("{}", value));
  return option;
}
template CLI::Option* add_number(CLI::App&, int32_t&, const NumberOption<int32_t>&);
template CLI::Option* add_number(CLI::App&, int64_t&, const NumberOption<int64_t>&);
template CLI::Option* add_number(CLI::App&, uint64_t&, const NumberOption<uint64_t>&);
template CLI::Option* add_number(CLI::App&, float&, const NumberOption<float>&);

template <class T>
CLI::Option* add_numbers(CLI::App& command, std::vector<T>& values,
                         const NumberOption<T>& declared) {
  const auto set = [&values, declared](const CLI::results_t& given) {
    values.clear();
    std::string_view rest = given.back();
    for (bool last = false; !last;) {
      const size_t comma = rest.find(',');
      last = comma == std::string_view::npos;
      values.push_back(checked_number(std::string(rest.substr(0, comma)), declared));
      rest.remove_prefix(last ? rest.size() : comma + 1);
    }
    return true;
  };
  auto* option = command.add_option(declared.name, CLI::callback_t(set), declared.help);
  option->expected(1)->type_name("N[,N...]");
  if (!values.empty()) option->default_str(fmt::format("{}", fmt::join(values, ",")));
  return option;
}
template CLI::Option* add_numbers(CLI::App&, std::vector<int32_t>&, const NumberOption<int32_t>&);
template CLI::Option* add_numbers(CLI::App&, std::vector<int64_t>&, const NumberOption<int64_t>&);

CLI::Option* add_text(CLI::App& command, const char* name, std::optional<std::string>& value,
                      const char* type, const char* help) {
  // By hand: newer versions of CLI11 make no text of an empty one.
  const auto set = [&value](const CLI::results_t& given) {
    value = given.back();
    return true;
  };
  return command.add_option(name, CLI::callback_t(set), help)->expected(1)->type_name(type);
}

void declare_threads(CLI::App& command, int32_t& threads) {
  add_number<int32_t>(
      command, threads,
      {"--threads", 1, 1024, "threads to compute with (default: see `kvasir system`)", false});
}

void ComputeOptions::declare(CLI::App& command) {
  declare_threads(command, threads);
  add_number<int64_t>(command, context_tokens,
                      {"--ctx", 1, int64_t{1} << 27,
                       "tokens the context may hold (default: as the model was trained)", false});
  declare_chunk_and_types(command);
}

void ComputeOptions::declare_chunk_and_types(CLI::App& command) {
  add_number<int64_t>(
      command, prefill_chunk,
      {"--prefill-chunk", 1, 65536, "prompt tokens evaluated together; never changes a result"});
  command
      .add_option("--kv-type", kv_type,
                  "type of stored keys and values; auto: f32 for f32 models, else f16")
      ->check(CLI::IsMember({"auto", "f16", "f32"}))
      ->capture_default_str()
      ->type_name("TYPE");
  command
      .add_option("--math", math,
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

void SamplingOptions::declare(CLI::App& command, Seed seed) {
  auto& p = parameters;
  add_number<float>(
      command, p.temperature,
      {"--temperature", 0, 1000,
       "0: always the most likely token (of equals the lowest id); higher: more varied"});
  add_number<int32_t>(
      command, p.top_k,
      {"--top-k", 0, std::numeric_limits<int32_t>::max(), "keep the N most likely tokens; 0: all"});
  add_number<float>(command, p.top_p,
                    {"--top-p", 0, 1, "keep the smallest set of tokens with this probability"});
  add_number<float>(
      command, p.min_p,
      {"--min-p", 0, 1, "drop tokens below this share of the best one's probability"});
  add_number<float>(command, p.repetition_penalty,
                    {"--repetition-penalty", 1e-6F, 1e6F, "weaken tokens already seen; 1: off"});
  add_number<float>(
      command, p.presence_penalty,
      {"--presence-penalty", -1e6F, 1e6F, "subtracted from the logit of every token seen"});
  add_number<float>(
      command, p.frequency_penalty,
      {"--frequency-penalty", -1e6F, 1e6F, "subtracted for each time a token was seen"});
  auto* option = add_number<uint64_t>(
      command, p.seed,
      {"--seed", 0, std::numeric_limits<uint64_t>::max(),
       seed == Seed::fixed
           ? "seed of the random draws; the same seed gives the same answer"
           : "seed of the random draws (default: another one each time, shown with the figures)",
       seed == Seed::fixed});
  // A second look at the same result: whether there was one.
  option->each([this](const std::string&) { seed_given = true; });
}

void LengthOptions::declare(CLI::App& command) {
  add_number<int64_t>(
      command, max_tokens,
      {"--max-tokens", 0, kMaxTokens, "most tokens of an answer; 0: until the context is full"});
  const auto set = [this](const CLI::results_t& given) {
    for (const auto& text : given) {
      if (text.empty()) throw CLI::ValidationError("--stop", "the text is empty");
    }
    stop_strings = given;
    return true;
  };
  // Raw texts: as a list, CLI11 would split "[a,b]" in two.
  command
      .add_option("--stop", CLI::callback_t(set),
                  "text that ends an answer and is not shown (repeatable)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("TEXT");
}

GenerateOptions generate_options(const SamplingOptions& sampling, const LengthOptions& length,
                                 const Tokenizer& tokenizer) {
  GenerateOptions options;
  options.sampling = sampling.parameters;
  options.max_tokens = length.max_tokens;
  options.stop_strings = length.stop_strings;
  const auto ends = tokenizer.end_tokens();
  options.end_tokens.assign(ends.begin(), ends.end());
  return options;
}

CLI::Option* declare_system(CLI::App& command, std::string& system) {
  return command.add_option("--system", system, "system message, or @FILE")->type_name("TEXT");
}

CLI::Option* declare_model(CLI::App& command, std::string& model) {
  return command
      .add_option("model", model, "path of a GGUF file, or name of a model in the cache folder")
      ->type_name("MODEL");
}

CLI::Option* declare_json(CLI::App& command, bool& json) {
  return command.add_flag("--json", json, "print JSON, for scripts");
}

Result<std::string> read_text(const std::string& path) {
  struct Close {
    void operator()(std::FILE* file) const {
      if (file != stdin) std::fclose(file);
    }
  };
  const std::unique_ptr<std::FILE, Close> file(path == "-" ? stdin
                                                           : std::fopen(path.c_str(), "rb"));
  if (!file) {
    return make_error(errno == ENOENT ? ErrorCode::not_found : ErrorCode::io,
                      "cannot open '{}': {}", path, system_reason(errno));
  }
  std::string text;
  char buffer[65536];
  size_t n;
  while ((n = std::fread(buffer, 1, sizeof(buffer), file.get())) > 0) text.append(buffer, n);
  if (std::ferror(file.get()) != 0)
    return make_error(ErrorCode::io, "cannot read '{}': {}", path, system_reason(errno));
  return text;
}

Result<std::string> text_or_file(const std::string& text) {
  if (text.size() > 1 && text[0] == '@') return read_text(text.substr(1));
  return text;
}

}  // namespace kvasir::cli

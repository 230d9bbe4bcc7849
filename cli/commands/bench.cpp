// kvasir bench: prefill and decode speed, held against the machine's measured limits.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <random>

#include "cli/commands.h"
#include "cli/loading.h"
#include "cli/machine.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "core/base/error.h"
#include "core/engine/kernel_choice.h"
#include "core/engine/machine_limits.h"

namespace kvasir::cli {
namespace {

struct Options {
  std::string model;
  int64_t prompt_tokens = 512;
  int64_t generate_tokens = 64;
  int32_t repetitions = 5;
  ComputeOptions compute;
  bool json = false;
};

struct Limits {
  double read_bytes_per_s = 0;
  double multiply_adds_per_s = 0;
};

/// One timed part: the median run's figures.
struct Measured {
  const char* mode = "";
  int64_t tokens = 0;
  double seconds = 0;
  ForwardStatistics forward;
  double bytes_per_s() const { return static_cast<double>(forward.bytes()) / seconds; }
  double multiply_adds_per_s() const {
    return static_cast<double>(forward.multiply_adds()) / seconds;
  }
};

/// Random tokens, as llama-bench takes them.
std::vector<TokenId> random_tokens(int64_t n, int64_t n_vocab, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<TokenId> tokens(static_cast<size_t>(n));
  for (auto& t : tokens) t = static_cast<TokenId>(random() % static_cast<uint64_t>(n_vocab));
  return tokens;
}

Measured median(std::vector<Measured> runs) {
  std::sort(runs.begin(), runs.end(),
            [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  return runs[runs.size() / 2];
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Every position evaluated from an empty context, logits of the last row.
Result<Measured> run_prefill(Session& session, const Options& options, unsigned seed) {
  const auto tokens =
      random_tokens(options.prompt_tokens, session.engine().model().n_vocab(), seed);
  if (auto s = session.rewind(0); !s) return std::move(s).error();
  session.reset_statistics();
  const auto start = std::chrono::steady_clock::now();
  if (auto s = session.evaluate(tokens, {}, &InterruptGuard::token()); !s)
    return std::move(s).error();
  return Measured{"prefill", options.prompt_tokens, seconds_since(start),
                  session.statistics().forward};
}

/// One token after another from an empty context.
Result<Measured> run_decode(Session& session, const Options& options, unsigned seed) {
  const auto tokens =
      random_tokens(options.generate_tokens, session.engine().model().n_vocab(), seed);
  if (auto s = session.rewind(0); !s) return std::move(s).error();
  session.reset_statistics();
  const auto start = std::chrono::steady_clock::now();
  for (const TokenId token : tokens) {
    if (auto s = session.append(token, &InterruptGuard::token()); !s) return std::move(s).error();
  }
  return Measured{"decode", options.generate_tokens, seconds_since(start),
                  session.statistics().forward};
}

Json result_json(const Measured& m, const Limits& limits, int threads) {
  const bool prefill = m.mode == std::string_view("prefill");
  const double share = prefill ? m.multiply_adds_per_s() / limits.multiply_adds_per_s
                               : m.bytes_per_s() / limits.read_bytes_per_s;
  Json zones = Json::object();
  for (size_t z = 0; z < m.forward.zone_time.size(); ++z)
    zones[kZoneNames[z]] = std::chrono::duration<double>(m.forward.zone_time[z]).count() * 1e3;
  return {{"mode", m.mode},
          {"tokens", m.tokens},
          {"depth", 0},
          {"batch", 1},
          {"threads", threads},
          {"tokens_per_s", static_cast<double>(m.tokens) / m.seconds},
          {"gb_per_s", m.bytes_per_s() / 1e9},
          {"gmac_per_s", m.multiply_adds_per_s() / 1e9},
          {"share_of_limit", share},
          {"limit", prefill ? "gmac_per_s" : "read_gb_per_s"},
          {"zones_ms", zones}};
}

Result<std::vector<Measured>> measure(Session& session, const Options& options) {
  std::vector<Measured> prefill, decode;
  const InterruptGuard guard;
  ProgressBar bar("measuring");
  for (int i = -1; i < options.repetitions; ++i) {  // the first one warms up
    bar.update(i + 1, options.repetitions + 1);
    const auto seed = static_cast<unsigned>(i + 2);
    for (const bool is_prefill : {true, false}) {
      if ((is_prefill ? options.prompt_tokens : options.generate_tokens) == 0) continue;
      auto run =
          is_prefill ? run_prefill(session, options, seed) : run_decode(session, options, seed);
      if (!run) return std::move(run).error();
      if (i >= 0) (is_prefill ? prefill : decode).push_back(*run);
    }
  }
  std::vector<Measured> results;
  if (!prefill.empty()) results.push_back(median(prefill));
  if (!decode.empty()) results.push_back(median(decode));
  return results;
}

void print_table(const Json& json) {
  const auto& limits = json["limits"];
  print(fmt::format("limits: reads {:.1f} GB/s, {:.0f} G multiply-adds/s ({}, {} threads)\n\n",
                    limits["read_gb_per_s"].get<double>(), limits["gmac_per_s"].get<double>(),
                    json["machine"]["isa"].get<std::string>(),
                    json["machine"]["threads"].get<int>()));
  print(fmt::format("{:<8} {:>7} {:>12} {:>9} {:>9} {:>15}\n", "mode", "tokens", "tokens/s", "GB/s",
                    "G mac/s", "share of limit"));
  for (const auto& r : json["results"]) {
    print(fmt::format("{:<8} {:>7} {:>12.1f} {:>9.1f} {:>9.1f} {:>14.1f}%\n",
                      r["mode"].get<std::string>(), r["tokens"].get<int64_t>(),
                      r["tokens_per_s"].get<double>(), r["gb_per_s"].get<double>(),
                      r["gmac_per_s"].get<double>(), 100 * r["share_of_limit"].get<double>()));
  }
  for (const auto& r : json["results"]) {
    print(fmt::format("\n{}: milliseconds of {} tokens by zone\n", r["mode"].get<std::string>(),
                      r["tokens"].get<int64_t>()));
    for (const auto& [zone, ms] : r["zones_ms"].items())
      print(fmt::format("  {:<16} {:>9.2f}\n", zone, ms.get<double>()));
  }
}

int run(const Options& options) {
  EngineOptions engine_options = options.compute.engine();
  if (engine_options.context_tokens == 0)
    engine_options.context_tokens = std::max(options.prompt_tokens, options.generate_tokens);
  auto ready = load_for(options.model, engine_options);
  if (!ready) return fail(ready.error());
  auto session = Session::create(ready->engine);
  if (!session) return fail(session.error());
  auto results = measure(**session, options);
  if (!results) return fail(results.error());
  auto threads = Threads::create(ready->engine->threads());
  auto bandwidth = measure_memory_bandwidth(*threads);
  if (!bandwidth) return fail(bandwidth.error());
  auto kernels = choose_kernels();
  if (!kernels) return fail(kernels.error());
  Limits limits = {*bandwidth, measure_multiply_add_peak(*kernels->table, *threads)};
  // A limit below what was reached was not the limit (the machine was busy while measuring it).
  for (const auto& m : *results) {
    limits.read_bytes_per_s = std::max(limits.read_bytes_per_s, m.bytes_per_s());
    limits.multiply_adds_per_s = std::max(limits.multiply_adds_per_s, m.multiply_adds_per_s());
  }
  Json json;
  json["machine"] = describe_engine(*ready->engine);
  json["machine"]["cpu"] = cpu_name();
  json["model"] = {{"name", ready->loaded->name},
                   {"path", ready->loaded->path},
                   {"weight_bytes", ready->engine->memory_plan().weight_bytes}};
  json["limits"] = {{"read_gb_per_s", limits.read_bytes_per_s / 1e9},
                    {"gmac_per_s", limits.multiply_adds_per_s / 1e9}};
  json["repetitions"] = options.repetitions;
  json["results"] = Json::array();
  for (const auto& m : *results)
    json["results"].push_back(result_json(m, limits, ready->engine->threads()));
  if (options.json) {
    print(to_text(json, 2) + "\n");
  } else {
    print_table(json);
  }
  return finish_output();
}

}  // namespace

void add_bench(CLI::App& app, Run& run_later) {
  auto* command =
      app.add_subcommand("bench", "prefill and decode speed against this machine's limits");
  auto options = std::make_shared<Options>();
  declare_model(*command, options->model)->required();
  add_number<int64_t>(*command, options->prompt_tokens,
                      {"--prompt-tokens", 0, int64_t{1} << 24, "tokens of the prefill; 0: none"});
  add_number<int64_t>(*command, options->generate_tokens,
                      {"--generate-tokens", 0, int64_t{1} << 24, "tokens of the decode; 0: none"});
  add_number<int32_t>(*command, options->repetitions,
                      {"--repetitions", 1, 1000, "runs of each; the median counts"});
  options->compute.declare(*command);
  declare_json(*command, options->json);
  command->callback([options, &run_later] {
    if (options->prompt_tokens == 0 && options->generate_tokens == 0)
      throw CLI::ValidationError("--prompt-tokens and --generate-tokens",
                                 "both are 0: nothing to measure");
    run_later = [options] { return run(*options); };
  });
}

}  // namespace kvasir::cli

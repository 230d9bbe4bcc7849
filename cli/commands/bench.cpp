// kvasir bench: prefill and decode speed, held against the machine's measured limits.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "cli/commands.h"
#include "cli/loading.h"
#include "cli/machine.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "core/engine/kernel_choice.h"
#include "core/engine/machine_limits.h"
#include "core/evaluation/speed.h"

namespace kvasir::cli {
namespace {

struct Options {
  std::string model;
  int64_t prompt_tokens = 512;
  int64_t generate_tokens = 64;
  std::vector<int64_t> depths = {0};
  std::vector<int64_t> batches = {1};
  std::vector<int32_t> threads;  ///< empty: what the machine advises
  int32_t repetitions = 5;
  ComputeOptions compute;
  bool json = false;

  template <class T>
  static T largest(const std::vector<T>& values) {
    return *std::max_element(values.begin(), values.end());
  }
};

struct Limits {
  double read_bytes_per_s = 0;
  double multiply_adds_per_s = 0;
};

/// One row of the table.
struct Row {
  SpeedResult result;
  int threads = 1;
};

using LimitsByThreads = std::map<int, Limits>;

std::vector<SpeedCase> cases(const Options& options) {
  std::vector<SpeedCase> all;
  for (const int64_t depth : options.depths) {
    if (options.prompt_tokens > 0)
      all.push_back({SpeedMode::prefill, options.prompt_tokens, depth, 1});
    for (const int64_t batch : options.batches) {
      if (options.generate_tokens > 0)
        all.push_back({SpeedMode::decode, options.generate_tokens, depth, batch});
    }
  }
  return all;
}

EngineOptions engine_options(const Options& options) {
  EngineOptions engine = options.compute.engine();
  const int64_t needed =
      Options::largest(options.depths) + std::max(options.prompt_tokens, options.generate_tokens);
  engine.context_tokens = needed;
  engine.max_sequences = options.generate_tokens > 0 ? Options::largest(options.batches) : 1;
  engine.max_logit_rows = engine.max_sequences;
  if (!options.threads.empty()) engine.threads = options.threads[0];
  return engine;
}

Result<Limits> measure_limits(int threads_count) {
  auto threads = Threads::create(threads_count);
  auto bandwidth = measure_memory_bandwidth(*threads);
  if (!bandwidth) return std::move(bandwidth).error();
  auto kernels = choose_kernels();
  if (!kernels) return std::move(kernels).error();
  return Limits{*bandwidth, measure_multiply_add_peak(*kernels->table, *threads)};
}

Result<std::vector<Row>> measure(Engine& engine, const Options& options) {
  const InterruptGuard guard;
  ProgressBar bar(fmt::format("measuring, {} threads", engine.threads()));
  SpeedMeter meter(engine);
  const auto all = cases(options);
  const auto total = static_cast<int64_t>(all.size()) * (options.repetitions + 1);
  std::vector<Row> rows;
  for (const auto& one : all) {
    const auto before = static_cast<int64_t>(rows.size()) * (options.repetitions + 1);
    bar.update(before, total);
    auto result = meter.measure(
        one, options.repetitions, [&] { bar.update(before, total); }, &InterruptGuard::token());
    if (!result) return std::move(result).error();
    rows.push_back({*result, engine.threads()});
  }
  return rows;
}

/// Rows of every number of threads, and the limits with as many.
Status measure_all(const Options& options, Ready& ready, std::vector<Row>& rows,
                   LimitsByThreads& limits) {
  std::vector<int32_t> counts = options.threads;
  if (counts.empty()) counts.push_back(ready.engine->threads());
  for (const int32_t count : counts) {
    if (ready.engine->threads() != count) {
      EngineOptions other = engine_options(options);
      other.threads = count;
      ready.engine.reset();  // its memory first
      auto engine = Engine::create(ready.loaded->model, other);
      if (!engine) return std::move(engine).error();
      ready.engine = std::move(*engine);
    }
    auto measured = measure(*ready.engine, options);
    if (!measured) return std::move(measured).error();
    auto found = measure_limits(count);
    if (!found) return std::move(found).error();
    // A limit below what was reached was not the limit (the machine was busy while measuring it).
    for (const auto& row : *measured) {
      found->read_bytes_per_s = std::max(found->read_bytes_per_s, row.result.bytes_per_s());
      found->multiply_adds_per_s =
          std::max(found->multiply_adds_per_s, row.result.multiply_adds_per_s());
    }
    limits[count] = *found;
    rows.insert(rows.end(), measured->begin(), measured->end());
  }
  return {};
}

double milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

/// Milliseconds of the whole run by zone. "other" is what lies outside the parallel region's zones:
/// planning a step, starting and joining threads. Sampling is not part of the run's time.
Json zones_json(const SpeedResult& result) {
  Json zones = Json::object();
  const auto& forward = result.forward;
  auto rest = result.time;
  for (size_t z = 0; z < forward.zone_time.size(); ++z) {
    rest -= forward.zone_time[z];
    if (static_cast<Zone>(z) != Zone::matmul) {
      zones[kZoneNames[z]] = milliseconds(forward.zone_time[z]);
      continue;
    }
    for (size_t f = 0; f < forward.matmul_time.size(); ++f) {
      const auto format = static_cast<kernels::WeightFormat>(f);
      if (forward.matmul_calls[f] > 0)
        zones[fmt::format("matmul {}", kernels::format_name(format))] =
            milliseconds(forward.matmul_time[f]);
    }
  }
  zones["other"] = std::max(0.0, milliseconds(rest));
  if (result.what.mode == SpeedMode::decode) zones["sampling"] = milliseconds(result.sampling);
  return zones;
}

Json result_json(const Row& row, const Limits& limits) {
  const auto& r = row.result;
  const bool prefill = r.what.mode == SpeedMode::prefill;
  const double read_share = r.bytes_per_s() / limits.read_bytes_per_s;
  const double product_share = r.multiply_adds_per_s() / limits.multiply_adds_per_s;
  // A prefill is held against the multiply-adds; a decode against whichever limit is nearer: one
  // sequence reads, sixteen compute.
  const bool computes = prefill || product_share > read_share;
  return {{"mode", prefill ? "prefill" : "decode"},
          {"tokens", r.what.tokens},
          {"depth", r.what.depth},
          {"batch", r.what.batch},
          {"threads", row.threads},
          {"tokens_per_s", r.tokens_per_s()},
          {"gb_per_s", r.bytes_per_s() / 1e9},
          {"gmac_per_s", r.multiply_adds_per_s() / 1e9},
          {"share_of_limit", computes ? product_share : read_share},
          {"limit", computes ? "gmac_per_s" : "read_gb_per_s"},
          {"share_of_read_limit", read_share},
          {"share_of_gmac_limit", product_share},
          {"milliseconds", milliseconds(r.time)},
          {"zones", zones_json(r)}};
}

Json limits_json(const LimitsByThreads& limits) {
  const auto one = [](const Limits& l) {
    return Json{{"read_gb_per_s", l.read_bytes_per_s / 1e9},
                {"gmac_per_s", l.multiply_adds_per_s / 1e9}};
  };
  Json json = one(limits.rbegin()->second);  // of the most threads
  for (const auto& [count, l] : limits) json["by_threads"][std::to_string(count)] = one(l);
  return json;
}

void print_table(const Json& json) {
  for (const auto& [count, limits] : json["limits"]["by_threads"].items()) {
    print(fmt::format("limits of {} thread{}: reads {:.1f} GB/s, {:.0f} G multiply-adds/s ({})\n",
                      count, count == "1" ? "" : "s", limits["read_gb_per_s"].get<double>(),
                      limits["gmac_per_s"].get<double>(),
                      json["machine"]["isa"].get<std::string>()));
  }
  print(fmt::format("\n{:<8} {:>8} {:>6} {:>8} {:>7} {:>11} {:>8} {:>8} {:>9} {:>8}\n", "mode",
                    "depth", "batch", "threads", "tokens", "tokens/s", "GB/s", "of limit",
                    "G mac/s", "of limit"));
  for (const auto& r : json["results"]) {
    print(fmt::format(
        "{:<8} {:>8} {:>6} {:>8} {:>7} {:>11.1f} {:>8.1f} {:>7.1f}% {:>9.1f} {:>7.1f}%\n",
        r["mode"].get<std::string>(), r["depth"].get<int64_t>(), r["batch"].get<int64_t>(),
        r["threads"].get<int>(), r["tokens"].get<int64_t>(), r["tokens_per_s"].get<double>(),
        r["gb_per_s"].get<double>(), 100 * r["share_of_read_limit"].get<double>(),
        r["gmac_per_s"].get<double>(), 100 * r["share_of_gmac_limit"].get<double>()));
  }
  for (const auto& r : json["results"]) {
    const double all = r["milliseconds"].get<double>();
    print(fmt::format("\n{}, depth {}, batch {}, threads {}: {:.2f} ms by zone\n",
                      r["mode"].get<std::string>(), r["depth"].get<int64_t>(),
                      r["batch"].get<int64_t>(), r["threads"].get<int>(), all));
    for (const auto& [zone, ms] : r["zones"].items()) {
      const double time = ms.get<double>();
      const bool beside = zone == "sampling";
      print(fmt::format("  {:<20} {:>10.2f} {}\n", zone, time,
                        beside ? " (beside it)" : fmt::format("{:>6.1f}%", 100 * time / all)));
    }
  }
}

int run(const Options& options) {
  auto ready = load_for(options.model, engine_options(options));
  if (!ready) return fail(ready.error());
  std::vector<Row> rows;
  LimitsByThreads limits;
  if (auto s = measure_all(options, *ready, rows, limits); !s) return fail(s.error());
  Json json;
  json["machine"] = describe_engine(*ready->engine);
  json["machine"]["cpu"] = cpu_name();
  json["machine"]["threads"] = limits.rbegin()->first;
  json["model"] = {{"name", ready->loaded->name},
                   {"path", ready->loaded->path},
                   {"weight_bytes", ready->engine->memory_plan().weight_bytes}};
  json["limits"] = limits_json(limits);
  json["repetitions"] = options.repetitions;
  json["results"] = Json::array();
  for (const auto& row : rows) json["results"].push_back(result_json(row, limits[row.threads]));
  if (options.json) {
    print(to_text(json, 2) + "\n");
  } else {
    print_table(json);
  }
  return finish_output();
}

void check(const Options& options) {
  if (options.prompt_tokens == 0 && options.generate_tokens == 0) {
    throw CLI::ValidationError("--prompt-tokens and --generate-tokens",
                               "both are 0: nothing to measure");
  }
  const int64_t batch = Options::largest(options.batches);
  if (batch > options.compute.prefill_chunk) {
    throw CLI::ValidationError(
        "--batch", fmt::format("a step of {} sequences needs --prefill-chunk {} at least, not {}",
                               batch, batch, options.compute.prefill_chunk));
  }
}

}  // namespace

void add_bench(CLI::App& app, Run& run_later) {
  auto* command =
      app.add_subcommand("bench", "prefill and decode speed against this machine's limits");
  auto options = std::make_shared<Options>();
  declare_model(*command, options->model)->required();
  constexpr int64_t kMost = int64_t{1} << 24;
  add_number<int64_t>(*command, options->prompt_tokens,
                      {"--prompt-tokens", 0, kMost, "tokens of the prefill; 0: none"});
  add_number<int64_t>(*command, options->generate_tokens,
                      {"--generate-tokens", 0, kMost,
                       "tokens of the decode, in each sequence; 0: none. Sampling is shown among "
                       "the zones and not counted in tokens/s"});
  add_numbers<int64_t>(*command, options->depths,
                       {"--depth", 0, kMost,
                        "tokens that the context holds before (random; filling is not counted)"});
  add_numbers<int64_t>(*command, options->batches,
                       {"--batch", 1, 4096, "sequences decoded together, one token each a step"});
  add_numbers<int32_t>(
      *command, options->threads,
      {"--threads", 1, 1024, "threads to compute with (default: see `kvasir system`)", false});
  add_number<int32_t>(*command, options->repetitions,
                      {"--repetitions", 1, 1000, "runs of each; the median counts"});
  options->compute.declare_chunk_and_types(*command);
  declare_json(*command, options->json);
  command->callback([options, &run_later] {
    check(*options);
    run_later = [options] { return run(*options); };
  });
}

}  // namespace kvasir::cli

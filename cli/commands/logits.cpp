// kvasir logits: the numbers themselves, as NumPy files.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/commands.h"
#include "cli/loading.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "core/base/error.h"
#include "core/files/atomic_file.h"
#include "core/files/npy.h"

namespace kvasir::cli {
namespace {

struct Options {
  std::string model;
  std::string tokens_file;
  std::string output;
  bool last = false;
  bool json = false;
  ComputeOptions compute;
};

using Sequences = std::vector<std::vector<TokenId>>;

struct Asked {
  Sequences sequences;
  bool is_list_of_lists = false;
};

Result<std::vector<TokenId>> read_ids(const Json& list, const std::string& where) {
  std::vector<TokenId> ids;
  if (list.empty()) return make_error(ErrorCode::invalid_argument, "{} is empty", where);
  for (size_t i = 0; i < list.size(); ++i) {
    if (!list[i].is_number_integer() || list[i] < 0 || list[i] > INT32_MAX) {
      return make_error(ErrorCode::invalid_argument, "element {} of {} is {}, not a token id", i,
                        where, brief(list[i]));
    }
    ids.push_back(list[i].get<TokenId>());
  }
  return ids;
}

Result<Asked> read_sequences(const std::string& path) {
  auto read = read_json(path);
  if (!read) return std::move(read).error();
  const Json& json = *read;
  const auto where = fmt::format("the list in '{}'", path);
  if (!json.is_array()) {
    return make_error(ErrorCode::invalid_argument, "'{}' is {}, not a JSON list of token ids", path,
                      brief(json));
  }
  Asked asked;
  asked.is_list_of_lists = !json.empty() && json[0].is_array();
  if (!asked.is_list_of_lists) {
    auto ids = read_ids(json, where);
    if (!ids) return std::move(ids).error();
    asked.sequences.push_back(std::move(*ids));
    return asked;
  }
  for (size_t i = 0; i < json.size(); ++i) {
    if (!json[i].is_array())
      return make_error(ErrorCode::invalid_argument,
                        "element {} of {} is {}, but element 0 is a list", i, where,
                        brief(json[i]));
    auto ids = read_ids(json[i], fmt::format("list {} in '{}'", i, path));
    if (!ids) return std::move(ids).error();
    asked.sequences.push_back(std::move(*ids));
  }
  return asked;
}

/// "out.npy" -> "out.3.npy".
std::string numbered(const std::string& path, size_t i) {
  const auto dot = path.rfind('.');
  const auto slash = path.rfind('/');
  if (dot == std::string::npos || (slash != std::string::npos && dot < slash))
    return fmt::format("{}.{}", path, i);
  return fmt::format("{}.{}{}", path.substr(0, dot), i, path.substr(dot));
}

/// One sequence on its way: how far it is, and its file.
struct Running {
  std::unique_ptr<kv::Sequence> sequence;
  AtomicFile file;
  size_t done = 0;
};

struct Totals {
  ForwardStatistics forward;
  Json chunks = Json::array();
  int64_t evaluated = 0;
  Json kv_bytes_by_type;
};

/// One ragged step: every unfinished sequence gives tokens, in order, until the step is full.
Status step(Engine& engine, const Asked& asked, std::vector<Running>& running, bool last,
            Totals& totals, const CancelToken* cancel) {
  std::vector<StepRequest> requests;
  std::vector<size_t> which;
  int64_t left = engine.options().prefill_chunk;
  for (size_t i = 0; i < running.size() && left > 0; ++i) {
    const auto& ids = asked.sequences[i];
    const auto n = std::min<size_t>(ids.size() - running[i].done, static_cast<size_t>(left));
    if (n == 0) continue;
    const bool ends = running[i].done + n == ids.size();
    requests.push_back({running[i].sequence.get(), std::span(ids).subspan(running[i].done, n),
                        !last, last && ends});
    which.push_back(i);
    left -= static_cast<int64_t>(n);
  }
  if (auto s = engine.step(requests, cancel); !s) return s;
  totals.forward.add(engine.last_step());
  totals.chunks.push_back(engine.options().prefill_chunk - left);
  totals.evaluated += engine.options().prefill_chunk - left;
  const auto n_vocab = static_cast<size_t>(engine.model().n_vocab());
  auto logits = engine.logits();
  for (size_t r = 0; r < requests.size(); ++r) {
    const size_t rows =
        requests[r].all_logits ? requests[r].tokens.size() : (requests[r].last_logits ? 1 : 0);
    const auto mine = logits.first(rows * n_vocab);
    logits = logits.subspan(rows * n_vocab);
    if (auto s = running[which[r]].file.write(
            {reinterpret_cast<const char*>(mine.data()), mine.size_bytes()});
        !s)
      return s;
    running[which[r]].done += requests[r].tokens.size();
  }
  return {};
}

Status evaluate(Engine& engine, const Asked& asked, const Options& options, Totals& totals) {
  std::vector<Running> running;
  int64_t total = 0;
  for (size_t i = 0; i < asked.sequences.size(); ++i) {
    const auto& ids = asked.sequences[i];
    for (size_t p = 0; p < ids.size(); ++p) {
      if (ids[p] >= engine.model().n_vocab()) {
        return make_error(
            ErrorCode::invalid_argument,
            "token {} at position {} of list {} is outside the vocabulary of {} tokens", ids[p], p,
            i, engine.model().n_vocab());
      }
    }
    auto sequence = engine.new_sequence();
    if (!sequence) return std::move(sequence).error();
    auto file =
        AtomicFile::create(asked.is_list_of_lists ? numbered(options.output, i) : options.output);
    if (!file) return std::move(file).error();
    const int64_t shape[] = {static_cast<int64_t>(options.last ? 1 : ids.size()),
                             engine.model().n_vocab()};
    if (auto s = file->write(npy::header(npy::Element::f32, shape)); !s) return s;
    running.push_back({std::move(*sequence), std::move(*file), 0});
    total += static_cast<int64_t>(ids.size());
  }
  const InterruptGuard guard;
  ProgressBar bar("evaluating");
  while (totals.evaluated < total) {
    if (auto s = step(engine, asked, running, options.last, totals, &InterruptGuard::token()); !s)
      return s;
    bar.update(totals.evaluated, total);
  }
  totals.kv_bytes_by_type = describe_kv(engine);
  for (auto& one : running) {
    if (auto s = one.file.commit(); !s) return s;
  }
  return {};
}

int run(const Options& options) {
  auto asked = read_sequences(options.tokens_file);
  if (!asked) return fail(asked.error());
  EngineOptions engine_options = options.compute.engine();
  engine_options.max_sequences = static_cast<int64_t>(asked->sequences.size());
  size_t longest = 0;
  size_t all = 0;
  for (const auto& ids : asked->sequences) {
    longest = std::max(longest, ids.size());
    all += ids.size();
  }
  engine_options.max_logit_rows =
      options.last ? engine_options.max_sequences
                   : std::min(engine_options.prefill_chunk, static_cast<int64_t>(all));
  if (engine_options.context_tokens == 0)
    engine_options.context_tokens = static_cast<int64_t>(longest);
  auto ready = load_for(options.model, engine_options);
  if (!ready) return fail(ready.error());
  Totals totals;
  if (auto s = evaluate(*ready->engine, *asked, options, totals); !s) return fail(s.error());
  if (options.json) {
    Json json = describe_engine(*ready->engine);
    json["sequences"] = asked->sequences.size();
    json["tokens_evaluated"] = totals.evaluated;
    json["tokens_cached"] = 0;
    json["prefill_chunks"] = totals.chunks;
    json["kernels"] = describe_kernels(totals.forward);
    json["kv_bytes_by_type"] = totals.kv_bytes_by_type;
    json["n_vocab"] = ready->engine->model().n_vocab();
    print(to_text(json, 2) + "\n");
  }
  return finish_output();
}

}  // namespace

void add_logits(CLI::App& app, Run& run_later) {
  auto* command = app.add_subcommand("logits", "logits of token ids as float32 NumPy files");
  auto options = std::make_shared<Options>();
  declare_model(*command, options->model)->required();
  command
      ->add_option("--tokens", options->tokens_file,
                   "JSON list of ids, or list of lists: then out.0.npy, out.1.npy, ...")
      ->required()
      ->type_name("FILE");
  command->add_option("--output", options->output, "[n_tokens, n_vocab] float32 .npy")
      ->required()
      ->type_name("FILE");
  command->add_flag("--last", options->last, "only the last token's row");
  options->compute.declare(*command);
  declare_json(*command, options->json);
  command->callback([options, &run_later] { run_later = [options] { return run(*options); }; });
}

}  // namespace kvasir::cli

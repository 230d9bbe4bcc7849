// kvasir tokenize: text to token ids.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "core/files/gguf.h"
#include "models/load.h"

namespace kvasir::cli {
namespace {

struct Options {
  std::string model;
  std::optional<std::string> text;
  std::optional<std::string> file;
  bool json = false;
  bool no_special = false;
};

int run(const Options& options) {
  auto text = options.text ? Result<std::string>(*options.text) : read_text(*options.file);
  if (!text) return fail(text.error());
  auto path = resolve_model(options.model);
  if (!path) return fail(path.error());
  auto file = gguf::File::open(*path);
  if (!file) return fail(file.error());
  auto tokenizer = Tokenizer::from_gguf((*file)->header);
  if (!tokenizer) return fail(tokenizer.error());
  const Tokenizer& t = **tokenizer;
  auto ids = t.encode(*text, options.no_special ? SpecialTokens::as_text : SpecialTokens::parse);
  if (!ids) return fail(ids.error());
  if (!options.no_special && t.adds_bos() && t.bos()) ids->insert(ids->begin(), *t.bos());
  if (options.json) {
    print(to_text(Json(*ids)) + "\n");
  } else {
    for (const TokenId id : *ids) {
      const bool control = t.token_kind(id) == TokenKind::control;
      const auto shown = control ? t.token_text(id) : t.token_bytes(id);
      print(fmt::format("{:>7} {}\n", id, to_text(Json(std::string(shown)))));
    }
  }
  return finish_output();
}

}  // namespace

void add_tokenize(CLI::App& app, Run& run_later) {
  auto* command = app.add_subcommand("tokenize", "text to token ids");
  auto options = std::make_shared<Options>();
  declare_model(*command, options->model)->required();
  auto* source = command->add_option_group("Text", "exactly one of these")->require_option(1);
  add_text(*source, "--text", options->text, "TEXT", "the text");
  add_text(*source, "--file", options->file, "FILE",
           "file with the text, any bytes; - is standard input");
  command->add_flag("--no-special", options->no_special,
                    "control tokens in the text stay text, and no BOS is added");
  declare_json(*command, options->json);
  command->callback([options, &run_later] { run_later = [options] { return run(*options); }; });
}

}  // namespace kvasir::cli

// A tiny model's file, its engine, and its logits by the engine.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "models/load.h"
#include "tests/support/tiny_llama.h"

namespace kvasir::test {

inline std::string temporary_file(const char* name) {
  return (std::filesystem::temp_directory_path() /
          (std::string("kvasir-test-") + std::to_string(getpid()) + "-" + name))
      .string();
}

/// A model file that is removed at the end of the test.
struct ModelFile {
  explicit ModelFile(const GgufWriter& writer) : path(writer.write(temporary_file("model.gguf"))) {}
  ~ModelFile() { std::filesystem::remove(path); }
  std::string path;
};

inline std::vector<int32_t> random_tokens(size_t n, int64_t n_vocab, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> tokens(n);
  for (auto& t : tokens) t = static_cast<int32_t>(random() % static_cast<unsigned>(n_vocab));
  return tokens;
}

/// Logits of every position, each evaluated by the engine in chunks.
inline std::vector<std::vector<float>> all_logits(Engine& engine,
                                                  const std::vector<int32_t>& tokens,
                                                  size_t chunk) {
  auto sequence = engine.new_sequence();
  REQUIRE(sequence);
  std::vector<std::vector<float>> rows;
  for (size_t at = 0; at < tokens.size(); at += chunk) {
    const auto part = std::span(tokens).subspan(at, std::min(chunk, tokens.size() - at));
    const StepRequest request = {sequence->get(), part, true, false};
    REQUIRE(engine.step({&request, 1}));
    const auto n_vocab = static_cast<size_t>(engine.model().n_vocab());
    for (size_t r = 0; r < part.size(); ++r) {
      const auto row = engine.logits().subspan(r * n_vocab, n_vocab);
      rows.emplace_back(row.begin(), row.end());
    }
  }
  return rows;
}

inline std::shared_ptr<Engine> make_engine(const std::string& path, EngineOptions options) {
  auto loaded = load_model(path);
  REQUIRE_MESSAGE(loaded, (loaded ? "" : loaded.error().message));
  options.max_logit_rows = options.prefill_chunk;
  auto engine = Engine::create((*loaded)->model, options);
  REQUIRE_MESSAGE(engine, (engine ? "" : engine.error().message));
  return std::move(*engine);
}

inline std::string load_error(const GgufWriter& writer) {
  const ModelFile file(writer);
  auto loaded = load_model(file.path);
  REQUIRE_FALSE(loaded);
  return loaded.error().message;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace kvasir::test

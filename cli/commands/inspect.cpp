// kvasir inspect: what a model file holds, and the memory it will need.
#include <fmt/format.h>

#include <memory>

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
  ComputeOptions compute;
  bool json = false;
};

constexpr size_t kShownElements = 8;
constexpr size_t kShownText = 200;

template <class T>
T element(const gguf::Array& array, size_t i) {
  T value;
  __builtin_memcpy(&value, array.raw.data() + i * sizeof(T), sizeof(T));
  return value;
}

Json array_element(const gguf::Array& array, size_t i) {
  using gguf::ValueType;
  switch (array.element_type) {
    case ValueType::u8:
      return element<uint8_t>(array, i);
    case ValueType::i8:
      return element<int8_t>(array, i);
    case ValueType::u16:
      return element<uint16_t>(array, i);
    case ValueType::i16:
      return element<int16_t>(array, i);
    case ValueType::u32:
      return element<uint32_t>(array, i);
    case ValueType::i32:
      return element<int32_t>(array, i);
    case ValueType::f32:
      return element<float>(array, i);
    case ValueType::boolean:
      return element<uint8_t>(array, i) != 0;
    case ValueType::u64:
      return element<uint64_t>(array, i);
    case ValueType::i64:
      return element<int64_t>(array, i);
    case ValueType::f64:
      return element<double>(array, i);
    case ValueType::string:
      return std::string(array.strings[i]);
    case ValueType::array:
      break;
  }
  return nullptr;
}

/// A value as JSON; long arrays by their length and first elements.
Json value_json(const gguf::Value& value) {
  return std::visit(
      [](const auto& v) -> Json {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string_view>) {
          return std::string(v);
        } else if constexpr (std::is_same_v<T, gguf::Array>) {
          Json first = Json::array();
          for (size_t i = 0; i < std::min<size_t>(v.count, kShownElements); ++i)
            first.push_back(array_element(v, i));
          if (v.count <= kShownElements) return first;
          return Json{{"count", v.count}, {"first", first}};
        } else {
          return v;
        }
      },
      value);
}

/// At most kShownText bytes, cut between two characters.
std::string shortened(std::string text) {
  if (text.size() <= kShownText) return text;
  size_t end = kShownText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

Json tensors_json(const gguf::Header& header) {
  Json all = Json::array();
  for (const auto& t : header.tensors()) {
    Json shape = Json::array();
    for (int d = 0; d < t.n_dims; ++d) shape.push_back(t.shape[static_cast<size_t>(d)]);
    all.push_back({{"name", t.name},
                   {"type", dtype_name(t.dtype)},
                   {"shape", shape},
                   {"bytes", t.size_bytes}});
  }
  return all;
}

Json plan_json(const MemoryPlan& plan) {
  return {{"weight_bytes", plan.weight_bytes},
          {"kv_type", kv::kv_type_name(plan.kv_type)},
          {"kv_bytes_per_token", plan.kv_bytes_per_token},
          {"ctx", plan.context_tokens},
          {"kv_bytes", plan.kv_bytes},
          {"scratch_bytes", plan.scratch_bytes},
          {"total_bytes", plan.total_bytes()}};
}

void print_text(const gguf::File& file, const LoadedModel& loaded, const MemoryPlan& plan) {
  print(fmt::format("{}\nGGUF v{}, {} tensors, {:.1f} MB\n\nmetadata\n",
                    printable(file.mapping.path()), file.header.version(),
                    file.header.tensors().size(),
                    static_cast<double>(file.mapping.bytes().size()) / 1e6));
  for (const auto& entry : file.header.metadata()) {
    print(fmt::format("  {} = {}\n", printable(entry.key),
                      printable(shortened(to_text(value_json(entry.value))))));
  }
  print("\ntensors\n");
  for (const auto& t : file.header.tensors()) {
    std::string shape;
    for (int d = 0; d < t.n_dims; ++d)
      shape += fmt::format("{}{}", d > 0 ? " x " : "", t.shape[static_cast<size_t>(d)]);
    print(fmt::format("  {:<40} {:<8} {:<16} {:>12} bytes\n", printable(t.name),
                      dtype_name(t.dtype), shape, t.size_bytes));
  }
  const auto mb = [](size_t bytes) { return static_cast<double>(bytes) / 1e6; };
  print(fmt::format(
      "\ntokenizer   {}, {} tokens\ntemplate    {}\n\nmemory plan at a context of {} tokens\n"
      "  weights   {:>10.1f} MB packed\n  KV        {:>10.1f} MB ({} bytes a token, {})\n"
      "  scratch   {:>10.1f} MB\n  total     {:>10.1f} MB\n",
      printable(loaded.tokenizer->description()), loaded.tokenizer->n_vocab(),
      loaded.chat_template ? "in the file" : printable(loaded.chat_template_error),
      plan.context_tokens, mb(plan.weight_bytes), mb(plan.kv_bytes), plan.kv_bytes_per_token,
      kv::kv_type_name(plan.kv_type), mb(plan.scratch_bytes), mb(plan.total_bytes())));
}

int run(const Options& options) {
  auto path = resolve_model(options.model);
  if (!path) return fail(path.error());
  LoadOptions load;
  load.header_only = true;
  load.check_memory = false;
  auto loaded = load_model(*path, load);
  if (!loaded) return fail(loaded.error());
  auto file = gguf::File::open(*path);
  if (!file) return fail(file.error());
  const MemoryPlan plan = Engine::plan(*(*loaded)->model, options.compute.engine());
  if (!options.json) {
    print_text(**file, **loaded, plan);
    return finish_output();
  }
  Json metadata = Json::object();
  for (const auto& entry : (*file)->header.metadata())
    metadata[std::string(entry.key)] = value_json(entry.value);
  print(to_text({{"path", *path},
                 {"gguf_version", (*file)->header.version()},
                 {"architecture", (*loaded)->architecture},
                 {"name", (*loaded)->name},
                 {"trained_context_tokens", (*loaded)->model->trained_context_tokens()},
                 {"n_vocab", (*loaded)->model->n_vocab()},
                 {"n_layers", (*loaded)->model->n_layers()},
                 {"tokenizer", (*loaded)->tokenizer->description()},
                 {"chat_template", (*loaded)->chat_template != nullptr},
                 {"chat_template_error", (*loaded)->chat_template_error},
                 {"memory_plan", plan_json(plan)},
                 {"metadata", metadata},
                 {"tensors", tensors_json((*file)->header)}},
                2) +
        "\n");
  return finish_output();
}

}  // namespace

void add_inspect(CLI::App& app, Run& run_later) {
  auto* command =
      app.add_subcommand("inspect", "metadata, tensors and memory plan of a model file");
  auto options = std::make_shared<Options>();
  declare_model(*command, options->model)->required();
  options->compute.declare(*command);
  declare_json(*command, options->json);
  command->callback([options, &run_later] { run_later = [options] { return run(*options); }; });
}

}  // namespace kvasir::cli

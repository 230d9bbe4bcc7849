#include "cli/saved_chat.h"

#include <charconv>

#include "cli/json.h"
#include "cli/messages.h"
#include "core/base/error.h"
#include "core/files/atomic_file.h"

namespace kvasir::cli {
namespace {

constexpr int kVersion = 1;

/// The parameters a file holds: one line each, for both directions.
template <class Parameters, class Visit>
void for_each_parameter(Parameters& p, const Visit& visit) {
  visit("temperature", p.temperature);
  visit("top_k", p.top_k);
  visit("top_p", p.top_p);
  visit("min_p", p.min_p);
  visit("repetition_penalty", p.repetition_penalty);
  visit("presence_penalty", p.presence_penalty);
  visit("frequency_penalty", p.frequency_penalty);
  visit("seed", p.seed);
}

Json number(float value) {
  // As the shortest decimal that gives the float again: 0.7, not 0.699999988079071.
  const std::string text = fmt::format("{}", value);
  double decimal = value;
  std::from_chars(text.data(), text.data() + text.size(), decimal);
  return decimal;
}
template <class T>
Json number(T value) {
  return value;
}

template <class T>
bool assign(T& value, const Json& json) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!json.is_number()) return false;
  } else {
    if (!json.is_number_unsigned()) return false;
    if (json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<T>::max())) return false;
  }
  value = json.get<T>();
  return true;
}

Result<SamplingParameters> sampling_from_json(const Json& json, const std::string& path) {
  if (!json.is_object())
    return make_error(ErrorCode::corrupt_file, "'sampling' in '{}' is {}, not an object", path,
                      brief(json));
  SamplingParameters parameters;
  size_t known = 0;
  Status status;
  for_each_parameter(parameters, [&](const char* name, auto& value) {
    if (!json.contains(name)) return;
    ++known;
    if (!assign(value, json[name])) {
      status = make_error(ErrorCode::corrupt_file, "'sampling.{}' in '{}' is {}", name, path,
                          brief(json[name]));
    }
  });
  if (!status) return std::move(status).error();
  if (known != json.size())
    return make_error(ErrorCode::corrupt_file, "'sampling' in '{}' has an unknown key", path);
  if (auto valid = validate(parameters); !valid)
    return make_error(ErrorCode::corrupt_file, "'sampling' in '{}': {}", path,
                      valid.error().message);
  return parameters;
}

/// Another spelling than ours is another model; no error.
ModelMark mark_from_json(const Json& json) {
  ModelMark mark;
  if (!json.is_object()) return mark;
  const auto text = [&](const char* key) {
    return json.contains(key) && json[key].is_string() ? json[key].get<std::string>()
                                                       : std::string();
  };
  mark.name = text("name");
  mark.architecture = text("architecture");
  if (json.contains("n_vocab")) assign(mark.n_vocab, json["n_vocab"]);
  if (json.contains("weight_bytes")) assign(mark.weight_bytes, json["weight_bytes"]);
  return mark;
}

}  // namespace

Status write_saved_chat(const std::string& path, const SavedChat& chat) {
  Json sampling = Json::object();
  for_each_parameter(chat.sampling,
                     [&](const char* name, auto value) { sampling[name] = number(value); });
  const Json json = {{"kvasir_chat", kVersion},
                     {"model",
                      {{"name", chat.model.name},
                       {"architecture", chat.model.architecture},
                       {"n_vocab", chat.model.n_vocab},
                       {"weight_bytes", chat.model.weight_bytes}}},
                     {"sampling", sampling},
                     {"messages", messages_to_json(chat.messages)}};
  auto file = AtomicFile::create(path);
  if (!file) return std::move(file).error();
  if (auto status = file->write(to_text(json, 2) + "\n"); !status) return status;
  return file->commit();
}

Result<SavedChat> read_saved_chat(const std::string& path) {
  auto json = read_json(path);
  if (!json) return std::move(json).error();
  if (!json->is_object() || !json->contains("kvasir_chat"))
    return make_error(ErrorCode::corrupt_file, "'{}' is not a saved conversation", path);
  const Json& version = (*json)["kvasir_chat"];
  if (!version.is_number_integer() || version != kVersion) {
    return make_error(ErrorCode::unsupported,
                      "'{}' has the format version {}; this program reads {}", path, brief(version),
                      kVersion);
  }
  for (const char* key : {"model", "sampling", "messages"}) {
    if (!json->contains(key))
      return make_error(ErrorCode::corrupt_file, "'{}' has no '{}'", path, key);
  }
  auto sampling = sampling_from_json((*json)["sampling"], path);
  if (!sampling) return std::move(sampling).error();
  auto messages = messages_from_json((*json)["messages"], fmt::format("'messages' of '{}'", path));
  if (!messages) return std::move(messages).error();
  return SavedChat{mark_from_json((*json)["model"]), *sampling, std::move(*messages)};
}

}  // namespace kvasir::cli

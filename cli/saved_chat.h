// Conversations written to files by /save and read by /load.
#pragma once

#include <string>
#include <vector>

#include "core/sampling/sampler.h"
#include "core/text/chat_template.h"
#include "kvasir/result.h"

namespace kvasir::cli {

/// Identifies the model an answer came from.
struct ModelMark {
  std::string name;
  std::string architecture;
  int64_t n_vocab = 0;
  uint64_t weight_bytes = 0;
  bool operator==(const ModelMark&) const = default;
};

struct SavedChat {
  ModelMark model;
  SamplingParameters sampling;
  std::vector<ChatMessage> messages;
};

/// Appears whole or not at all.
Status write_saved_chat(const std::string& path, const SavedChat& chat);

/// corrupt_file, unsupported (another format version) or invalid_argument, naming the key at fault.
Result<SavedChat> read_saved_chat(const std::string& path);

}  // namespace kvasir::cli

// What stands behind the handles of kvasir/kvasir.hpp.
#pragma once

#include <memory>

#include "core/engine/conversation.h"
#include "kvasir/kvasir.hpp"
#include "models/load.h"

namespace kvasir {

struct LanguageModel::Impl {
  std::unique_ptr<LoadedModel> loaded;
  EngineOptions engine_options;

  /// A context of its own: threads, scratch memory, and room for one sequence.
  Result<std::unique_ptr<Session>> new_session() const;
};

struct Chat::Impl {
  std::shared_ptr<const LanguageModel::Impl> model;
  std::unique_ptr<Session> session;
  Conversation conversation;
};

/// What `generate` does not check itself.
Status check(const ReplyOptions& options);
GenerateOptions to_generate_options(const ReplyOptions& options, const Tokenizer& tokenizer);
Reply to_reply(Generation generation, const Session& session);

}  // namespace kvasir

// Conversations as JSON files.
#pragma once

#include <string>
#include <vector>

#include "cli/json.h"
#include "core/text/chat_template.h"
#include "kvasir/result.h"

namespace kvasir::cli {

/// A list of {"role": .., "content": ..}; errors name the element and key at fault.
Result<std::vector<ChatMessage>> messages_from_json(const Json& json, const std::string& where);
Result<std::vector<ChatMessage>> read_messages(const std::string& path);
Json messages_to_json(const std::vector<ChatMessage>& messages);

}  // namespace kvasir::cli

#include "core/text/chat_template.h"
#include "core/base/error.h"
namespace kvasir {
Result<std::unique_ptr<ChatTemplate>> ChatTemplate::parse(std::string_view) { return make_error(ErrorCode::unsupported, "not yet"); }
}

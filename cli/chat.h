// A conversation shown to a person: answers with their figures, saving and loading.
#pragma once

#include <memory>
#include <string>

#include "cli/loading.h"
#include "cli/saved_chat.h"
#include "core/engine/conversation.h"

namespace kvasir::cli {

class Chat {
 public:
  /// `ready` has a chat template.
  Chat(Ready ready, std::unique_ptr<Session> session, GenerateOptions options, bool figures);

  /// How an answer ended; what went wrong has been said.
  enum class Outcome { answered, cancelled, failed };
  Outcome answer(const std::string& text);
  /// Answers the last question again, with the next seed.
  Outcome regenerate();

  Status save(const std::string& path) const;
  /// On an error nothing has changed.
  Status load(const std::string& path);

  Conversation& conversation() { return conversation_; }
  const LoadedModel& model() const { return *ready_.loaded; }
  bool figures() const { return figures_; }
  void set_figures(bool on) { figures_ = on; }

 private:
  template <class Make>
  Outcome show(const Make& make);
  void print_figures(const Generation& generation);
  ModelMark mark() const;

  Ready ready_;
  std::unique_ptr<Session> session_;
  Conversation conversation_;
  GenerateOptions options_;
  bool figures_;
  double read_bytes_per_s_ = 0;  ///< measured at the first answer
};

}  // namespace kvasir::cli

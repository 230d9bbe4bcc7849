// Every family this build knows; each is defined in the file of its name.
#pragma once

#include "models/config.h"

namespace kvasir::families {

extern const Family gemma3;
extern const Family llama;
extern const Family qwen2;

}  // namespace kvasir::families

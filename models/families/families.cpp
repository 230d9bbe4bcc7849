#include "models/families/families.h"

namespace kvasir {

const std::vector<Family>& all_families() {
  static const std::vector<Family> all = {families::gemma3, families::llama, families::qwen2};
  return all;
}

}  // namespace kvasir

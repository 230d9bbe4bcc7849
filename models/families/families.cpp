#include "models/families/families.h"

namespace kvasir {

const std::vector<Family>& all_families() {
  static const std::vector<Family> all = {families::llama};
  return all;
}

}  // namespace kvasir

#include "models/config.h"

#include <algorithm>

namespace kvasir {

int64_t Config::n_layers_of(size_t kind) const {
  return std::count_if(layers.begin(), layers.end(),
                       [&](const LayerPlace& place) { return place.kind == kind; });
}

void Config::add_layer(const AttentionKind& kind) {
  const auto found = std::find(attention_kinds.begin(), attention_kinds.end(), kind);
  const auto index = static_cast<size_t>(found - attention_kinds.begin());
  if (found == attention_kinds.end()) attention_kinds.push_back(kind);
  layers.push_back({index, n_layers_of(index)});
}

}  // namespace kvasir
